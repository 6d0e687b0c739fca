"""Protocol buffers, read without their schema: TensorFlow's index files and SentencePiece's models are made of them."""

from collections.abc import Iterator


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of every field of a message; a nested message stays bytes, a fixed32 an integer.

    Raises:
        ValueError: the message is cut off, or uses a wire type that neither format has.

    >>> list(fields(bytes([0x08, 0x96, 0x01, 0x12, 0x01, 0x61])))
    [(1, 150), (2, b'a')]
    """
    position = 0
    while position < len(message):
        tag, position = read_varint(message, position)
        match tag & 7:
            case 0:
                value, position = read_varint(message, position)
            case 2:
                size, position = read_varint(message, position)
                value, position = message[position : position + size], position + size
            case 5:
                value, position = int.from_bytes(message[position : position + 4], "little"), position + 4
            case wire_type:
                raise ValueError(f"its wire type {wire_type} does not occur in such a file")
        if position > len(message):
            raise ValueError("it is cut off")
        yield tag >> 3, value


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """An integer in groups of seven bits, lowest first, and the position after it.

    >>> read_varint(bytes([0x96, 0x01]), 0)
    (150, 2)
    """
    value = 0
    for index in range(10):
        if position + index >= len(data):
            raise ValueError("it is cut off")
        byte = data[position + index]
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, position + index + 1
    raise ValueError("it holds an integer of more than 64 bits")
