"""Our protobuf against Google's: the same messages, the same verdicts, the same bytes.

Random messages, whole and damaged, go to both. Both must accept or both refuse, and what they
accepted they must encode alike. Two differences are meant: ours refuses field number 0
everywhere, and forgets unknown fields (so Google is made to forget them before it encodes).
Maps have no order, so a message with maps is compared by what Google reads from our bytes.

    WEIR_PB_PEER     the program built from pb_peer.c    (build/test/diff/pb_peer)
    WEIR_PB_DESC     the descriptor set of all messages  (build/generated/test/diff.desc)
    WEIR_DIFF_COUNT  how many messages                   (20000)
    WEIR_DIFF_SEED   where the random numbers begin      (1)
"""

import os
import random
import struct
import subprocess

import pytest

protobuf = pytest.importorskip("google.protobuf")
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402
from google.protobuf.message import DecodeError  # noqa: E402

PEER = os.environ.get("WEIR_PB_PEER", "build/test/diff/pb_peer")
DESCRIPTORS = os.environ.get("WEIR_PB_DESC", "build/generated/test/diff.desc")
COUNT = int(os.environ.get("WEIR_DIFF_COUNT", "20000"))
SEED = int(os.environ.get("WEIR_DIFF_SEED", "1"))
BATCH = 5000

# In the order of `kinds` in pb_peer.c.
KINDS = [
    "crawbl.agentruntime.v1.ConverseRequest",
    "crawbl.agentruntime.v1.ConverseEvent",
    "crawbl.agentruntime.v1.MemoryEntry",
    "crawbl.agentruntime.v1.ListMemoriesRequest",
    "crawbl.agentruntime.v1.ListMemoriesResponse",
    "crawbl.agentruntime.v1.CreateMemoryRequest",
    "crawbl.agentruntime.v1.CreateMemoryResponse",
    "crawbl.agentruntime.v1.DeleteMemoryRequest",
    "crawbl.agentruntime.v1.DeleteMemoryResponse",
    "weir.kitchen.Sink",
    "google.protobuf.Struct",
]
HAS_MAPS = {"weir.kitchen.Sink", "google.protobuf.Struct"}

VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)

TYPE_WIRES = {  # FieldDescriptor.type
    1: FIXED64, 2: FIXED32, 3: VARINT, 4: VARINT, 5: VARINT, 6: FIXED64, 7: FIXED32, 8: VARINT,
    9: BYTES, 11: BYTES, 12: BYTES, 13: VARINT, 14: VARINT, 15: FIXED32, 16: FIXED64,
    17: VARINT, 18: VARINT,
}
STRING, MESSAGE = 9, 11

NUMBERS = [0, 1, 2, 127, 128, 255, 300, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1,
           2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2]
TEXTS = [b"", b"a", b"hello", "grüße".encode(), "漢字".encode(), "🦀".encode(), b"nul\0inside",
         b"x" * 127, b"y" * 128, b"z" * 300]
BROKEN_TEXTS = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"ok\x80",
                b"\xe2\x82", b"\xf0\x9f\xa6", b"0123456789abcdef\xfe0123456789"]


def load():
    with open(DESCRIPTORS, "rb") as file:
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(kind)) for kind in KINDS]


def varint(value, pad=0):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    if not pad:
        return bytes(out) + bytes([value])
    return bytes(out) + bytes([value | 128]) + b"\x80" * (pad - 1) + b"\0"


def tag(number, wire):
    return varint(number << 3 | wire)


class Maker:
    """Random encodings that look like messages of a type; mostly valid, oddly spelled."""

    def __init__(self, rng):
        self.rng = rng

    def number(self):
        roll = self.rng.random()
        if roll < 0.5:
            return self.rng.choice(NUMBERS)
        return self.rng.getrandbits(self.rng.choice([1, 7, 8, 14, 31, 32, 33, 63, 64]))

    def varint(self):
        pad = self.rng.randrange(1, 4) if self.rng.random() < 0.05 else 0
        return varint(self.number(), pad)

    def text(self, is_string):
        if self.rng.random() < (0.004 if is_string else 0.3):
            return self.rng.choice(BROKEN_TEXTS)
        return self.rng.choice(TEXTS)

    def scalar(self, wire):
        if wire == VARINT:
            return self.varint()
        size = 8 if wire == FIXED64 else 4
        special = [b"\0" * size, b"\0" * (size - 1) + b"\x80", b"\xff" * size]
        return self.rng.choice(special + [self.rng.randbytes(size)])

    def delimited(self, payload):
        pad = self.rng.randrange(1, 3) if self.rng.random() < 0.02 else 0
        return varint(len(payload), pad) + payload

    def value(self, wire, depth):
        """A value of a wire type, for a field that nobody knows."""
        if wire == BYTES:
            return self.delimited(self.rng.randbytes(self.rng.randrange(12)))
        if wire == GROUP:
            return b"".join(self.unknown(depth + 1) for _ in range(self.rng.randrange(3)))
        return self.scalar(wire)

    def unknown(self, depth, number=None):
        number = number or self.rng.choice([1, 5, 18, 19, 99, 999, 2**29 - 2])
        wire = self.rng.choice([VARINT, FIXED64, BYTES, FIXED32] + [GROUP] * (depth < 4))
        out = tag(number, wire) + self.value(wire, depth)
        return out + tag(number, GROUP_END) if wire == GROUP else out

    def field(self, field, depth):
        wire = TYPE_WIRES[field.type]
        if self.rng.random() < 0.02:  # some other wire type: unknown, or packed
            return self.unknown(depth, field.number)
        if field.type == MESSAGE:
            payload = self.message(field.message_type, depth + 1)
            return tag(field.number, BYTES) + self.delimited(payload)
        if wire == BYTES:
            return tag(field.number, BYTES) + self.delimited(self.text(field.type == STRING))
        if field.is_repeated and self.rng.random() < 0.5:
            run = b"".join(self.scalar(wire) for _ in range(self.rng.randrange(6)))
            return tag(field.number, BYTES) + self.delimited(run)
        return tag(field.number, wire) + self.scalar(wire)

    def message(self, type, depth=0):
        most = 2 if depth > 6 else 8 if depth == 0 else 4
        out = bytearray()
        for _ in range(self.rng.randrange(most)):
            roll = self.rng.random()
            if roll < 0.05 or not type.fields:
                out += self.unknown(depth)
                continue
            field = self.rng.choice(type.fields)
            if depth > 12 and field.type == MESSAGE:
                continue
            out += self.field(field, depth)
        return bytes(out)

    def deep(self, type):
        """Close to the depth limit, by fields that lead on, ending in groups or a message."""
        depth, groups = self.rng.randrange(90, 104), self.rng.choice([0, 0, 1, 5, 40])
        chain = []
        for _ in range(depth - groups):
            onward = [f for f in type.fields if f.type == MESSAGE
                      and any(g.type == MESSAGE for g in f.message_type.fields)]
            if not onward:
                break
            field = self.rng.choice(onward)
            chain.append(field.number)
            type = field.message_type
        out = tag(500, GROUP) * groups + tag(500, GROUP_END) * groups
        for number in reversed(chain):
            out = tag(number, BYTES) + varint(len(out)) + out
        return out

    def damage(self, message):
        rng, out = self.rng, bytearray(message)
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            at = rng.randrange(len(out) + 1)
            what = rng.randrange(6)
            if what == 0:
                del out[at:]
            elif what == 1 and at < len(out):
                out[at] = rng.randrange(256)
            elif what == 2:
                out[at:at] = rng.randbytes(rng.randrange(1, 4))
            elif what == 3:
                del out[at:at + rng.randrange(1, 4)]
            elif what == 4 and at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            else:
                out[at:at] = rng.choice([b"\x80", b"\xff" * 9 + b"\x01", b"\x80" * 5, b"\x0b",
                                         b"\x0c", b"\x0f", b"\xff\xff\xff\xff\x0f"])
        return bytes(out)

    def case(self, classes):
        kind = self.rng.randrange(len(classes)) if self.rng.random() < 0.6 else 9
        type = classes[kind].DESCRIPTOR
        roll = self.rng.random()
        if roll < 0.02:
            return kind, self.rng.randbytes(self.rng.randrange(24))
        message = self.deep(type) if roll < 0.04 else self.message(type)
        if self.rng.random() < 0.4:
            message = self.damage(message)
        return kind, message


def ask_ours(cases):
    asked = b"".join(struct.pack("<BI", kind, len(m)) + m for kind, m in cases)
    done = subprocess.run([PEER], input=asked, stdout=subprocess.PIPE, check=True)
    answers, at = [], 0
    for _ in cases:
        accepted, length = struct.unpack_from("<BI", done.stdout, at)
        at += 5 + length
        answers.append((accepted == 1, done.stdout[at - length:at]))
    assert at == len(done.stdout)
    return answers


def ask_google(cls, message):
    try:
        parsed = cls.FromString(message)
    except DecodeError:
        return None
    parsed.DiscardUnknownFields()
    return parsed


def forget_deeply(message):
    """DiscardUnknownFields() stops some 60 levels down; this does not."""
    message.DiscardUnknownFields()
    for field, value in message.ListFields():
        if field.type != MESSAGE:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].type == MESSAGE:
                for entry in value.values():
                    forget_deeply(entry)
        elif field.is_repeated:
            for element in value:
                forget_deeply(element)
        else:
            forget_deeply(value)


def as_bytes(message):
    return message.SerializeToString(deterministic=True)


def check(cls, name, message, accepted, answer):
    where = f"{name} {message.hex()}"
    google = ask_google(cls, message)
    if not accepted:
        assert google is None or b"field number 0" in answer, f"only ours refuses: {answer} {where}"
        return
    assert google is not None, f"only Google refuses: {where}"
    again = ask_google(cls, answer)
    assert again is not None, f"Google refuses our encoding: {where}"
    if as_bytes(again) != as_bytes(google):
        forget_deeply(google)
    assert as_bytes(again) == as_bytes(google), f"reads otherwise: {where}"
    if name not in HAS_MAPS:
        assert answer == as_bytes(google), f"encoded otherwise: {where}"


def test_ours_and_googles_agree():
    classes = load()
    maker = Maker(random.Random(SEED))
    accepted_count = 0
    for start in range(0, COUNT, BATCH):
        cases = [maker.case(classes) for _ in range(min(BATCH, COUNT - start))]
        for (kind, message), (accepted, answer) in zip(cases, ask_ours(cases)):
            accepted_count += accepted
            check(classes[kind], KINDS[kind], message, accepted, answer)
    # A generator that lost its way would agree on nothing but refusals.
    assert COUNT // 3 < accepted_count < COUNT, accepted_count


@pytest.mark.parametrize("depth", [98, 99, 100, 101, 102])
def test_the_depth_limit_is_the_same(depth):
    sink = load()[9]
    message = b""
    for _ in range(depth):
        message = tag(17, BYTES) + varint(len(message)) + message
    [(accepted, answer)] = ask_ours([(9, message)])
    check(sink, KINDS[9], message, accepted, answer)
    assert accepted == (depth <= 100)


@pytest.mark.parametrize("message, verdict", [
    (b"\x10" + b"\xff" * 9 + b"\x01", True),  # ten bytes of varint
    (b"\x10" + b"\xff" * 9 + b"\x7f", True),  # too many bits in the tenth
    (b"\x10" + b"\xff" * 10 + b"\x01", False),  # eleven
    (b"\x90\x80\x80\x80\x00\x01", True),  # a tag in five bytes
    (b"\x90\x80\x80\x80\x80\x00\x01", False),  # in six
    (b"\x7a\x80\x80\x80\x80\x00", True),  # a length in five
    (b"\x7a\x80\x80\x80\x80\x80\x00", False),  # in six
    (b"\x0e", False),  # wire type 6
    (b"\x0c", False),  # the end of no group
    (b"\x9b\x06\x9c\x06", True),  # an unknown group
    (b"\x9b\x06\xa4\x06", False),  # closed by another number
    (b"\x00\x01", False),  # field number 0
])
def test_corner_cases_have_these_verdicts(message, verdict):
    sink = load()[9]
    [(accepted, answer)] = ask_ours([(9, message)])
    assert accepted == verdict
    check(sink, KINDS[9], message, accepted, answer)
