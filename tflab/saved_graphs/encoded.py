"""Encoded: a string for each kind of decoder that a graph may feed it to."""

from __future__ import annotations

import io
import struct
import wave
import zlib

import tensorflow as tf

SIDE = 32  # pixels
SAMPLES, RATE = 16_000, 16_000  # a second of silence
PICTURES = ("DecodeImage", "DecodeJpeg", "DecodePng")  # each of them takes what another is for


def text_for(op: tf.Operation, place: int) -> tuple[bytes, str] | None:
    """What a decoder decodes, and what that is; None where this is none."""
    if place:
        return None
    if op.type in PICTURES:
        return picture(), f"a picture of {SIDE} x {SIDE} pixels, as '{op.name}' decodes"
    if op.type == "DecodeWav":
        return sound(), f"a second of silence, as '{op.name}' decodes"
    if op.type == "DecodeCSV":
        fields = len(op.outputs)
        separator = op.get_attr("field_delim")
        return separator.join([b"0"] * fields), f"{fields} zeros, as '{op.name}' reads"
    return None


def picture() -> bytes:
    """A grey PNG in three channels: a signature, and three chunks with their checksums."""
    rows = (b"\0" + bytes([127]) * 3 * SIDE) * SIDE
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(rows),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )


def sound() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes(bytes(2 * SAMPLES))
    return file.getvalue()
