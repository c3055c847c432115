# Give an agent a tool, try the tool by itself, and then in a turn.
# From the folder that holds weir.yaml and word_count.py (examples/tools).
weir config check weir.yaml
weir tool call word_count '{"text": "to be or not to be"}' -c weir.yaml
weir run -c weir.yaml "how many words?"
