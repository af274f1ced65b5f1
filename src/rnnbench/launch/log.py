"""What a framework prints, kept within bounds: its beginning and its end are what tells why it failed."""

_HEAD = 64 * 1024
_TAIL = 192 * 1024


class BoundedLog:
    """Takes any amount of output, keeps the first 64 KiB and the last 192 KiB."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._dropped = 0

    def write(self, data: bytes) -> None:
        room = _HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * _TAIL:
            self._dropped += len(self._tail) - _TAIL
            self._tail = self._tail[-_TAIL:]

    def text(self) -> str:
        gap = f"\n… {self._dropped} bytes left out …\n".encode() if self._dropped else b""
        return (self._head + gap + self._tail).decode("utf-8", "replace")

    def tail(self, characters: int = 2000) -> str:
        return self.text()[-characters:]
