"""A worker's array file that is odd in any way fails with a reason, and never stops the driver."""

import io
import os
import random
import struct
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from rnnbench.launch.arrays import DamagedArrays, read_arrays

ROOM = 1 << 20


def header(descr="'<f4'", shape="(2,)", fortran="False"):
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


def npy(text=None, data=b"\0" * 8, version=1):
    encoded = (text or header()).encode("latin-1")
    return (
        b"\x93NUMPY" + bytes((version, 0)) + struct.pack("<H" if version == 1 else "<I", len(encoded)) + encoded + data
    )


def write_zip(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)


def saved(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def reason_of(path, expected_bytes=ROOM, folder=None):
    with pytest.raises(DamagedArrays) as caught:
        read_arrays(path, folder or path.parent, expected_bytes=expected_bytes)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "<i4", ">i8", "<f2", ">f4", "<f8"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_plain_arrays_are_read_as_numpy_reads_them(tmp_path, dtype, shape, save):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype, order="F")
    path = tmp_path / "train.npz"
    save(path, **{"gradient/layer0.fwd.w": array})
    found = read_arrays(path, tmp_path, expected_bytes=ROOM)["gradient/layer0.fwd.w"]
    assert found.shape == shape
    assert np.array_equal(found, array)
    assert found.dtype == np.dtype(dtype).newbyteorder("=")
    assert found.flags.writeable


def test_a_linked_folder_is_the_same_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    np.savez(tmp_path / "real" / "a.npz", x=np.ones(2))
    assert list(read_arrays(tmp_path / "real" / "a.npz", tmp_path / "link", expected_bytes=ROOM)) == ["x"]


ODD = {
    "void": (saved(np.zeros(2, "V2")), "V2"),
    "string": (saved(np.array(["a", "b"])), "U1"),
    "bytes": (saved(np.array([b"ab"])), "S2"),
    "complex": (saved(np.zeros(2, np.complex64)), "c8"),
    "date": (saved(np.zeros(1, "M8[s]")), "M8"),
    "long double": (npy(header("'<f16'"), b"\0" * 32), "f16"),
    "object": (npy(header("'|O'", "(1,)"), b"cos\nsystem\n(S'false'\ntR."), "'|O'; accepted are bool"),
    "structured": (saved(np.zeros(2, [("a", "f4"), ("b", "f4")])), "dtype"),
    "huge shape": (npy(header(shape="(1000000000, 1000000000)")), "declares the shape"),
    "nothing of a huge shape": (npy(header(shape="(0, 99999999999999999999, 9)"), b""), "Error"),
    "many dimensions": (npy(header(shape="(" + "1, " * 40 + ")"), b"\0" * 4), "40 dimensions"),
    "negative": (npy(header(shape="(-1,)")), "header"),
    "long header": (npy(header() + " " * 60_000), "header of"),
    "header of gigabytes": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{", "header of 4,294,967,295"),
    "deep header": (npy("(" * 4000), "header"),
    "header with code": (npy("{'descr': __import__('os').abort(), 'fortran_order': False, 'shape': (), }\n"), "dtype"),
    "other version": (npy(version=9), "not an array"),
    "no array": (b"hello", "not an array"),
    "empty": (b"", "not an array"),
    "short": (npy(data=b"\0" * 4), "has 4 bytes"),
    "long": (npy(data=b"\0" * 12), "has 12 bytes"),
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_array_has_a_reason(tmp_path, what):
    content, expected = ODD[what]
    write_zip(tmp_path / "a.npz", [("x.npy", content)])
    assert expected in reason_of(tmp_path / "a.npz")


def test_odd_archives_have_a_reason(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.warns(UserWarning, match="Duplicate"):
        write_zip(path, [("x.npy", npy()), ("x.npy", npy())])
    assert "twice" in reason_of(path)
    write_zip(path, [("readme\x1b[31m", b"hello")])
    assert "is not an array" in reason_of(path)
    write_zip(path, [("x.npy", npy())], zipfile.ZIP_LZMA)
    assert "compressed by method 14" in reason_of(path)
    write_zip(path, [("x.npy", npy())])
    whole = path.read_bytes()
    place = whole.index(b"PK\1\2") + 8  # its flags in the directory
    path.write_bytes(whole[:place] + b"\1" + whole[place + 1 :])
    assert "is encrypted" in reason_of(path)
    path.write_bytes(whole.replace(npy(), npy(data=b"\1" * 8)))
    assert "CRC" in reason_of(path)
    path.write_bytes(whole[: len(whole) // 2])
    assert "not a whole .npz" in reason_of(path)
    path.write_bytes(b"not a zip")
    assert "not a whole .npz" in reason_of(path)
    path.write_bytes(b"")
    assert "not a whole .npz" in reason_of(path)


def test_a_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "a.npz"
    write_zip(path, [("x.npy", saved(np.zeros(4 * ROOM, np.uint8)))], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < ROOM
    assert "were expected" in reason_of(path)
    np.savez(path, x=np.zeros(4 * ROOM, np.uint8))
    assert "the file has" in reason_of(path)


def test_what_is_not_a_file_has_a_reason(tmp_path):
    outside = tmp_path / "outside.npz"
    np.savez(outside, x=np.ones(2))
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "fifo.npz")
    (folder / "folder.npz").mkdir()
    (folder / "link.npz").symlink_to(outside)
    (folder / "loop.npz").symlink_to(folder / "loop.npz")
    for name in ("fifo.npz", "folder.npz", "link.npz", "loop.npz", "missing.npz", "x" * 300, "a\0b"):
        reason_of(folder / name, folder=folder)
    for path in (outside, folder / ".." / "outside.npz", outside.parent / "folder" / "..", "/dev/zero", ""):
        with pytest.raises(DamagedArrays):
            read_arrays(path, folder, expected_bytes=ROOM)


def test_no_damage_raises_anything_else(tmp_path):
    """Cut and overwritten in random places: arrays, or a reason."""
    path, chance = tmp_path / "a.npz", random.Random(5)
    for save in (np.savez, np.savez_compressed):
        save(path, x=np.arange(40.0), y=np.ones((2, 3), np.float32))
        whole = path.read_bytes()
        for _ in range(400):
            content = bytearray(whole)
            for _ in range(chance.choice((1, 1, 2, 8))):
                content[chance.randrange(len(content))] = chance.randrange(256)
            if chance.random() < 0.3:
                content = content[: chance.randrange(len(content))]
            path.write_bytes(content)
            with suppress(DamagedArrays):
                read_arrays(path, tmp_path, expected_bytes=ROOM)
