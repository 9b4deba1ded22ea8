"""The load on the webhook, in its own process: each connection sends the next review when it has an answer.

It uses bare streams: a full HTTP client needs more CPU than the webhook, and would be measured instead. It prints a
`Load` as JSON. bench.reviews runs it. It connects only to 127.0.0.1.
"""

import argparse
import asyncio
import ssl
import sys
import time
from pathlib import Path

import msgspec

from mpijob_elastic import names

HOST = "127.0.0.1"
LONGEST = 60.0  # seconds
MOST_CONNECTIONS = 256


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a load: the seconds that each answer took, and the number of wrong answers."""

    seconds: float
    took: tuple[float, ...]
    wrong: int


async def run(port: int, *, connections: int, seconds: float, body: bytes, expected: bytes) -> Load:
    """Send reviews for `seconds` after all are connected. An answer is wrong if it is not 200 or lacks `expected`.

    Raises OSError, and EOFError if the webhook closes a connection.
    """
    request = b"".join(
        (
            f"POST {names.PATH_MUTATE}?timeout=2s HTTP/1.1\r\nHost: {HOST}\r\n".encode(),
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode(),
            body,
        )
    )
    opened = await asyncio.gather(*(asyncio.open_connection(HOST, port, ssl=_context()) for _ in range(connections)))
    begin = time.perf_counter()
    answers = await asyncio.gather(*(_ask(*streams, request, expected, until=begin + seconds) for streams in opened))
    return Load(
        seconds=time.perf_counter() - begin,
        took=tuple(duration for took, _ in answers for duration in took),
        wrong=sum(wrong for _, wrong in answers),
    )


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes, expected: bytes, *, until: float
) -> tuple[list[float], int]:
    took: list[float] = []
    wrong = 0
    asked = time.perf_counter()
    while not took or asked < until:
        writer.write(request)
        status, answer = await _answer(reader)
        answered = time.perf_counter()
        took.append(answered - asked)
        wrong += status != b"200" or expected not in answer
        asked = answered
    writer.close()
    return took, wrong


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return head.split(b" ", 2)[1], await reader.readexactly(length)


def _context() -> ssl.SSLContext:
    # No check of the certificate: the caller chose the port, on this machine.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--connections", type=int, choices=range(1, MOST_CONNECTIONS + 1), metavar="N", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--body", type=Path, required=True, help="file with an AdmissionReview")
    parser.add_argument("--expect", required=True, help="text in every right answer")
    return parser.parse_args()


def main() -> None:
    """Run the load for the arguments of the command line."""
    asked = _arguments()
    load = run(
        asked.port,
        connections=asked.connections,
        seconds=min(asked.seconds, LONGEST),
        body=asked.body.read_bytes(),
        expected=asked.expect.encode(),
    )
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(load)))


if __name__ == "__main__":
    main()
