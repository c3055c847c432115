"""A tool: arguments as JSON on standard input, the result on standard output."""
import json
import sys

words = json.load(sys.stdin)["text"].split()
json.dump({"words": len(words), "longest": max(words, key=len, default="")}, sys.stdout)
