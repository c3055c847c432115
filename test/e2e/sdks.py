"""The vendors' largest packages, loaded where a test first uses them.

Each worker imports every test, and a third of that time went into building the classes of these
two, which most workers never use.
"""
import importlib


class Package:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("_") or name == "pytestmark":  # pytest looks at all that a test's file has
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


anthropic = Package("anthropic")
openai = Package("openai")
