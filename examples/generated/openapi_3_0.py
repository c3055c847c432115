"""The document of /openapi.json in the words of OpenAPI 3.0, for generators that stop there.

    python3 openapi_3_0.py openapi.json > openapi-3.0.json

`type: [string, null]` becomes `nullable`, and `const` an enum of one.
"""
import json
import sys


def older(value):
    if isinstance(value, list):
        return [older(item) for item in value]
    if not isinstance(value, dict):
        return value
    value = {name: older(item) for name, item in value.items()}
    kind = value.get("type")
    if isinstance(kind, list) and "null" in kind:
        (value["type"],) = [one for one in kind if one != "null"]
        value["nullable"] = True
    if "const" in value:
        value["enum"] = [value.pop("const")]
    return value


with open(sys.argv[1], encoding="utf-8") as file:
    document = older(json.load(file))
document["openapi"] = "3.0.3"
json.dump(document, sys.stdout, indent=1)
