#!/usr/bin/env python3
"""lint_layers: hold the includes under src/ to the order in src/LAYERS.

A file includes headers of its own folder and of folders on lower lines. Folders on one line
may not include each other, nor may the subfolders of a listed folder, and headers may not
include each other in a circle. Each name in
src/LAYERS is a folder with code, or a source file such as main. Findings read
`file:line: what`; the exit status is 1 when there is one.
"""
import pathlib
import re
import sys

SRC = pathlib.Path("src")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')

# Folders of code that the build writes stand on the layer of what they describe.
GENERATED = {"proto": "wire"}


def read_layers():
    """Folder -> (line in LAYERS, folder)."""
    layers = {}
    for line, text in enumerate((SRC / "LAYERS").read_text().splitlines()):
        for folder in text.split("#")[0].split():
            layers[folder] = line
    return layers


def layer_of(path, layers):
    """The longest listed folder that holds this path; main.c is its own layer."""
    parts = pathlib.PurePath(path).with_suffix("").parts
    if len(parts) == 1:
        return parts[0] if parts[0] in layers else None
    for length in range(len(parts) - 1, 0, -1):
        folder = "/".join(parts[:length])
        folder = GENERATED.get(folder, folder)
        if folder in layers:
            return folder
    return None


def includes(path):
    for number, text in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(text)
        if match:
            yield number, match.group(1)


def beside(name, header, folder):
    """The two subfolders of `folder` that these paths are in, if they are not the same. What the
    build writes for a folder is in none of them."""
    if not header.startswith(folder + "/"):
        return ""
    rooms = {pathlib.PurePath(path).relative_to(folder).parts[0] for path in (name, header)
             if len(pathlib.PurePath(path).relative_to(folder).parts) > 1}
    return " and ".join(sorted(rooms)) if len(rooms) == 2 else ""


def find_upward(files, layers):
    for path in files:
        name = path.relative_to(SRC).as_posix()
        own = layer_of(name, layers)
        if own is None:
            yield f"{path}:1: its folder is not in src/LAYERS"
            continue
        for number, header in includes(path):
            place = f"{path}:{number}"
            other = layer_of(header, layers)
            if "/" not in header:
                yield f'{place}: write "{header}" with its folder'
            elif other is None:
                yield f'{place}: "{header}" is in no folder of src/LAYERS'
            elif other == own and beside(name, header, own):
                yield f"{place}: {beside(name, header, own)} stand side by side in {own}"
            elif other != own and layers[other] == layers[own]:
                yield f"{place}: {own} and {other} stand side by side; neither includes the other"
            elif layers[other] < layers[own]:
                yield f"{place}: {own} includes upward, from {other}"


def find_absent(files, layers):
    known = {folder for path in files for folder in path.relative_to(SRC).with_suffix("").parents}
    known |= {path.relative_to(SRC).with_suffix("") for path in files}
    for folder, line in layers.items():
        if pathlib.PurePath(folder) not in known:
            yield f"{SRC}/LAYERS:{line + 1}: there is no code in src/{folder}; remove the name"


def find_own_header_first(files):
    for path in files:
        own = path.with_suffix(".h")
        if path.suffix == ".c" and own in files:
            first = next(includes(path), (1, None))
            if first[1] != own.relative_to(SRC).as_posix():
                yield f"{path}:{first[0]}: a source file includes its own header first"


def find_circles(files):
    graph = {
        path.relative_to(SRC).as_posix(): [header for _, header in includes(path)]
        for path in files
        if path.suffix == ".h"
    }
    done, road = set(), []

    def walk(header):
        if header in road:
            yield "src/" + header + ":1: includes itself: " + " -> ".join(
                road[road.index(header):] + [header]
            )
        elif header not in done:
            road.append(header)
            for other in graph.get(header, ()):
                yield from walk(other)
            done.add(road.pop())

    for header in sorted(graph):
        yield from walk(header)


def main():
    layers = read_layers()
    files = sorted([*SRC.rglob("*.c"), *SRC.rglob("*.h")])
    findings = [
        *find_absent(files, layers),
        *find_upward(files, layers),
        *find_own_header_first(set(files)),
        *find_circles(files),
    ]
    print("\n".join(findings) if findings else f"layers: {len(files)} files in order")
    return 1 if findings else 0


sys.exit(main())
