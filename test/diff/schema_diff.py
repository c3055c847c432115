"""Our JSON Schema against Python's jsonschema: random schemas, random values, one verdict.

Schemas are made of the keywords that ours knows, in small numbers of names and values so that
they meet; values are made near what the schema asks for, then changed here and there. Numbers
are chosen where floating point is exact, since Python's side rounds.

    WEIR_SCHEMA_PEER  the program built from schema_peer.c  (build/test/diff/schema_peer)
    WEIR_DIFF_COUNT   how many schemas                      (5000)
    WEIR_DIFF_SEED    where the random numbers begin        (1)
"""

import json
import os
import random
import subprocess

import pytest

jsonschema = pytest.importorskip("jsonschema")

PEER = os.environ.get("WEIR_SCHEMA_PEER", "build/test/diff/schema_peer")
COUNT = int(os.environ.get("WEIR_DIFF_COUNT", "5000"))
SEED = int(os.environ.get("WEIR_DIFF_SEED", "1"))
VALUES_EACH = 6
BATCH = 2000

TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"]
NAMES = ["a", "b", "c", "name", "naem", "", "x/y", "~t", "ä"]
TEXTS = ["", "a", "b", "ab", "abc", "äöü", "🦀", "2024-01-31", "a\nb", "nul\0"]
NUMBERS = [0, 1, 2, 3, -1, 1.0, 1.5, 0.5, -2.5, 10, 100, 2**53, 2**53 + 1, 2**70, 1e3, 0.25]
DIVISORS = [1, 2, 3, 0.5, 0.25, 10]
PATTERNS = ["a", "^a", "b$", "^[a-c]*$", "^.{2}$", r"^\d{4}-\d\d", "a|ö", "^$", r"\S", "(ab)+"]
DEFINITIONS = ["one", "two", "a/b", "c~d"]


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def scalar(self):
        return self.rng.choice([
            lambda: self.rng.choice(TEXTS), lambda: self.rng.choice(NUMBERS),
            lambda: self.rng.random() < 0.5, lambda: None])()

    def value(self, depth=0):
        roll = self.rng.random()
        if depth > 3 or roll < 0.5:
            return self.scalar()
        if roll < 0.75:
            return [self.value(depth + 1) for _ in range(self.rng.randrange(4))]
        return {self.rng.choice(NAMES): self.value(depth + 1)
                for _ in range(self.rng.randrange(4))}

    def names(self):
        return self.rng.sample(NAMES, self.rng.randrange(3))

    def schemas(self, depth):
        return [self.schema(depth + 1) for _ in range(self.rng.randrange(1, 4))]

    def keyword(self, depth):
        """One keyword and what it says."""
        rng = self.rng
        inner = [
            ("properties", lambda: {n: self.schema(depth + 1) for n in self.names()}),
            ("additionalProperties", lambda: self.schema(depth + 1)),
            ("propertyNames", lambda: self.schema(depth + 1)),
            ("items", lambda: self.schema(depth + 1)),
            ("prefixItems", lambda: self.schemas(depth)),
            ("contains", lambda: self.schema(depth + 1)),
            ("allOf", lambda: self.schemas(depth)),
            ("anyOf", lambda: self.schemas(depth)),
            ("oneOf", lambda: self.schemas(depth)),
            ("not", lambda: self.schema(depth + 1)),
            ("if", lambda: self.schema(depth + 1)),
            ("then", lambda: self.schema(depth + 1)),
            ("else", lambda: self.schema(depth + 1)),
        ]
        flat = [
            ("type", lambda: rng.choice(TYPES)),
            ("type", lambda: rng.sample(TYPES, rng.randrange(1, 4))),
            ("enum", lambda: [self.value(2) for _ in range(rng.randrange(1, 5))]),
            ("const", lambda: self.value(2)),
            ("minimum", lambda: rng.choice(NUMBERS)),
            ("maximum", lambda: rng.choice(NUMBERS)),
            ("exclusiveMinimum", lambda: rng.choice(NUMBERS)),
            ("exclusiveMaximum", lambda: rng.choice(NUMBERS)),
            ("multipleOf", lambda: rng.choice(DIVISORS)),
            ("minLength", lambda: rng.randrange(4)),
            ("maxLength", lambda: rng.randrange(4)),
            ("pattern", lambda: rng.choice(PATTERNS)),
            ("required", lambda: self.names()),
            ("minProperties", lambda: rng.randrange(3)),
            ("maxProperties", lambda: rng.randrange(3)),
            ("dependentRequired", lambda: {n: self.names() for n in self.names()}),
            ("minItems", lambda: rng.randrange(3)),
            ("maxItems", lambda: rng.randrange(3)),
            ("uniqueItems", lambda: rng.random() < 0.8),
            ("$ref", lambda: "#/$defs/" + rng.choice(DEFINITIONS)
                .replace("~", "~0").replace("/", "~1")),
        ]
        return rng.choice(flat + inner if depth < 4 else flat)

    def schema(self, depth=0):
        if depth and self.rng.random() < 0.1:
            return self.rng.random() < 0.7
        most = 4 if depth < 2 else 3
        keywords = [self.keyword(depth) for _ in range(self.rng.randrange(0, most))]
        return {name: make() for name, make in keywords}

    def document(self):
        schema = self.schema()
        schema["$defs"] = {name: self.schema(2) for name in DEFINITIONS}
        return schema

    def near(self, schema, depth=0):
        """A value that has a chance with this schema."""
        if not isinstance(schema, dict) or depth > 4 or self.rng.random() < 0.2:
            return self.value(depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.rng.choice(schema["enum"])
        for name in ("allOf", "anyOf", "oneOf"):
            if name in schema:
                return self.near(self.rng.choice(schema[name]), depth)
        if "properties" in schema or "required" in schema:
            wanted = {n: self.near(s, depth + 1)
                      for n, s in schema.get("properties", {}).items()}
            return wanted | {n: self.value(depth + 1) for n in schema.get("required", [])
                             if n not in wanted}
        if "prefixItems" in schema or "items" in schema:
            first = [self.near(s, depth + 1) for s in schema.get("prefixItems", [])]
            return first + [self.near(schema.get("items", True), depth + 1)
                            for _ in range(self.rng.randrange(3))]
        return self.value(depth)

    def case(self):
        schema = self.document()
        return schema, [self.near(schema) for _ in range(VALUES_EACH)]


def ask_ours(cases):
    lines = []
    for schema, values in cases:
        lines += [json.dumps(schema)] + [json.dumps(value) for value in values] + [""]
    done = subprocess.run([PEER], input="\n".join(lines) + "\n", stdout=subprocess.PIPE,
                          check=True, text=True)
    answers = iter(done.stdout.splitlines())
    return [(next(answers), [next(answers) for _ in values]) for _, values in cases]


def test_ours_and_pythons_agree():
    maker = Maker(random.Random(SEED))
    accepted = refused = circles = 0
    for start in range(0, COUNT, BATCH):
        cases = [maker.case() for _ in range(min(BATCH, COUNT - start))]
        for (schema, values), (read, verdicts) in zip(cases, ask_ours(cases)):
            if read != "ok":  # the only thing that a made schema can do wrong
                assert "leads back to itself" in read, (read, json.dumps(schema))
                circles += 1
                continue
            theirs = jsonschema.Draft202012Validator(schema)
            for value, verdict in zip(values, verdicts):
                fits = theirs.is_valid(value)
                where = f"{json.dumps(schema)} on {json.dumps(value)}: {verdict}"
                assert fits == (verdict == "ok"), where
                accepted += fits
                refused += not fits
    # A maker that lost its way would agree on nothing but one verdict.
    assert accepted > COUNT // 2 and refused > COUNT // 2 and circles < COUNT // 2
