"""Reading the arrays that a worker delivered, without trusting the file that they are in.

The file was written by a program that is being judged. Whatever is odd about it is that program's failure, so there is
one exception for all of it, and nothing in the file can stop the driver, fill its memory or make it run anything.
NumPy's own reader is not used for headers: it evaluates them, accepts every dtype, and allocates what they declare.
"""

import math
import os
import re
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

#: Plain numbers. bfloat16 has no dtype of NumPy's and arrives as `V2`; complex numbers and text are never asked for.
ACCEPTED = ("bool", "int8 to int64", "uint8 to uint64", "float16 to float64")
_DTYPE = re.compile(r"'(?P<dtype>[<>|=](?:b1|[iu][1248]|f[248]))'")
_HEADER = re.compile(
    r"\{'descr': (?P<descr>.{1,200}), 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>[0-9, ]{0,200})\), \}[ ]*\n"
)
_MAGIC = re.compile(rb"\x93NUMPY[\x01-\x03]\x00", re.DOTALL)
_MOST_ARRAYS = 10_000
_MOST_DIMENSIONS = 8
_LONGEST_HEADER = 4096
_OVERHEAD = 1 << 20  # names and headers, beyond the arrays themselves
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class DamagedArrays(ValueError):
    """A worker's array file cannot be used; the text says why."""


def read_arrays(path: str | Path, folder: str | Path, *, expected_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file that lies directly in `folder`, in this machine's byte order.

    `expected_bytes` is how much the arrays may take together; a file that declares more is not read. Raises
    DamagedArrays for everything odd, and nothing else.
    """
    limit = expected_bytes + _OVERHEAD
    try:
        with os.fdopen(_open_inside(str(path), str(folder), limit), "rb") as file, zipfile.ZipFile(file) as archive:
            members = _checked_members(archive, limit)
            return {member.filename[: -len(".npy")]: _read_member(archive, member) for member in members}
    except DamagedArrays:
        raise
    except OSError as error:
        raise DamagedArrays(error.strerror or str(error)) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error) as error:
        raise DamagedArrays(f"it is not a whole .npz file: {error or type(error).__name__}") from error
    except (ValueError, RuntimeError, MemoryError, OverflowError, LookupError) as error:
        raise DamagedArrays(f"{type(error).__name__}: {error}") from error


def _open_inside(path: str, folder: str, limit: int) -> int:
    """Open a regular file without waiting for it: a FIFO would never answer, and a link may lead anywhere."""
    if os.path.realpath(os.path.dirname(path)) != os.path.realpath(folder):
        raise DamagedArrays(f"it is not in the folder that was given: {path[:200]!r}")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DamagedArrays("it is not a regular file")
        if status.st_size > limit:
            raise DamagedArrays(f"the file has {status.st_size:,} bytes, and at most {limit:,} were expected")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _checked_members(archive: zipfile.ZipFile, limit: int) -> list[zipfile.ZipInfo]:
    """The archive's members, judged by what it declares, before anything is unpacked."""
    members = archive.infolist()
    if len(members) > _MOST_ARRAYS:
        raise DamagedArrays(f"it has {len(members):,} arrays")
    names = set()
    for member in members:
        if not member.filename.endswith(".npy"):
            raise DamagedArrays(f"{_quoted(member)} is not an array")
        if member.filename in names:
            raise DamagedArrays(f"{_quoted(member)} is in it twice")
        names.add(member.filename)
        if member.flag_bits & 0x1:
            raise DamagedArrays(f"{_quoted(member)} is encrypted")
        if member.compress_type not in _PLAIN:
            raise DamagedArrays(f"{_quoted(member)} is compressed by method {member.compress_type}")
    total = sum(member.file_size for member in members)
    if total > limit:
        raise DamagedArrays(f"its arrays take {total:,} bytes, and at most {limit:,} were expected")
    return members


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as file:
        dtype, shape, fortran, header_bytes = _read_header(file, member)
        # Compared before anything is allocated: a header of 128 bytes can declare petabytes.
        wanted, present = math.prod(shape) * dtype.itemsize, member.file_size - header_bytes
        if wanted != present:
            raise DamagedArrays(
                f"{_quoted(member)} declares the shape {shape}, {wanted:,} bytes, and has {present:,} bytes"
            )
        data = file.read(wanted)  # checks the sum of the whole member when it reaches its end
    if len(data) != wanted:
        raise DamagedArrays(f"{_quoted(member)} ends early")
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), order="C")


def _read_header(file: IO[bytes], member: zipfile.ZipInfo) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """Dtype, shape, order, and the bytes that the header takes. Only what NumPy itself writes is understood."""
    magic = file.read(8)
    if not _MAGIC.fullmatch(magic):
        raise DamagedArrays(f"{_quoted(member)} is not an array in NumPy's format")
    size_format = "<H" if magic[6] == 1 else "<I"
    length = struct.unpack(size_format, file.read(struct.calcsize(size_format)))[0]
    if length > _LONGEST_HEADER:
        raise DamagedArrays(f"{_quoted(member)} has a header of {length:,} bytes")
    match = _HEADER.fullmatch(file.read(length).decode("latin-1"))
    if match is None:
        raise DamagedArrays(f"{_quoted(member)} has a header that is not NumPy's, or a dtype of several fields")
    dtype = _DTYPE.fullmatch(match["descr"])
    if dtype is None:
        raise DamagedArrays(f"{_quoted(member)} has the dtype {match['descr']}; accepted are {', '.join(ACCEPTED)}")
    shape = tuple(int(size) for size in match["shape"].replace(",", " ").split())
    if len(shape) > _MOST_DIMENSIONS:
        raise DamagedArrays(f"{_quoted(member)} has {len(shape)} dimensions")
    return np.dtype(dtype["dtype"]), shape, match["fortran"] == "True", 8 + struct.calcsize(size_format) + length


def _quoted(member: zipfile.ZipInfo) -> str:
    """The name as ASCII in quotes: a control character in it must not reach a terminal."""
    return ascii(member.filename[:80])
