import bz2
import errno
import gzip
import lzma
import random
import tarfile
import zipfile
import zlib

import pytest

from archives import (
    ARCHIVES,
    FILES,
    LONG,
    MODES,
    PACKED,
    TEXT,
    entry,
    pack,
    read,
    refused,
    tar,
    tgz,
    zipped,
)
from bleuprint.corpus.download import archive
from bleuprint.corpus.download.archive import Damaged, open_member
from bleuprint.runtime.errors import UserError

# Damage


SINGLE = {
    "t.gz": gzip.compress(LONG),
    "t.bz2": bz2.compress(LONG),
    "t.xz": lzma.compress(LONG),
}


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.zip"])
@pytest.mark.parametrize("left", [0.99999, 0.9, 0.5, 0.1, 0.0001])
def test_a_truncated_archive_is_told_wherever_the_member_lies(name, left):
    data = PACKED[name][: int(len(PACKED[name]) * left)]
    for member, _ in FILES:
        assert refused(name, data, member).startswith(name)


def test_a_tar_file_truncated_within_a_member_or_a_header_is_told():
    data = tar(FILES)
    for end in (len(LONG) // 2, len(LONG) + 1000, len(data) - 11_000):
        assert "truncated or damaged" in refused("a.tar", data[:end], "b/last.fr")


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("left", [0.99999, 0.9, 0.5, 0.0001])
def test_a_truncated_file_is_told(name, left):
    data = SINGLE[name][: int(len(SINGLE[name]) * left)]
    assert refused(name, data).startswith(f"{name}: truncated or damaged")
    message = refused("a.tgz", tgz([(name, data)]), name)
    assert message.startswith(f"a.tgz!{name}: truncated or damaged")


@pytest.mark.parametrize("name", [*ARCHIVES, *SINGLE])
def test_an_empty_file_is_told(name):
    members = [FILES[0][0]] if name in ARCHIVES else []
    assert refused(name, b"", *members).startswith(f"{name}: ")
    message = refused("o.tgz", tgz([(name, b"")]), name, *members)
    assert message.startswith(f"o.tgz!{name}: ")


@pytest.mark.parametrize("name", [*ARCHIVES, *SINGLE])
def test_what_is_not_what_its_name_says_is_told(name):
    members = [FILES[0][0]] if name in ARCHIVES else []
    page = b"<!DOCTYPE html>\n<html>404</html>\n" * 100
    assert refused(name, page, *members).startswith(f"{name}: truncated or damaged, or not what")


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.zip", "t.gz"])
def test_changed_bytes_are_told_or_change_nothing(tmp_path, name):
    draw = random.Random(7)
    path = tmp_path / "kept"
    body = LONG[:3000] + TEXT
    packed = gzip.compress(body) if name == "t.gz" else pack(name, [("x", TEXT), ("b/t", body)])
    told = 0
    for _ in range(300):
        data = bytearray(packed)
        for _ in range(draw.choice([1, 1, 3])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data)
        try:
            with open_member(path, name, [] if name == "t.gz" else ["b/t"]) as stream:
                found = stream.read()
        except UserError:
            told += 1
        else:
            assert found == body
    assert told > 150


def test_damage_is_told_from_other_mistakes():
    for name, data in (("a.tgz", PACKED["a.tgz"][:-9]), ("a.zip", TEXT), ("a.tgz", b"")):
        with pytest.raises(Damaged):
            read(name, data, "b/text.de")
    with pytest.raises(UserError) as error:
        read("a.tgz", PACKED["a.tgz"], "b/no")
    assert not isinstance(error.value, Damaged)


def test_a_damaged_header_is_not_taken_for_the_end():
    data = bytearray(tar([("a", TEXT), ("b", TEXT), ("c", TEXT)]))
    data[1024 + 5] ^= 1  # in the header of b
    assert "truncated or damaged" in refused("a.tar", bytes(data), "c")
    assert "truncated or damaged" in refused("a.tar", bytes(data), "a")


@pytest.mark.parametrize("name", MODES)
def test_a_disk_that_fails_is_not_taken_for_a_damaged_file(monkeypatch, name):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(archive._Disk, "read", fail)
    with pytest.raises(OSError, match="Input/output error"):
        read(name, PACKED[name], "b/text.de")


def test_an_encrypted_member_is_told():
    data = bytearray(zipped([("t", TEXT)]))
    data[data.index(b"PK\1\2") + 8] |= 1
    data[6] |= 1
    assert refused("a.zip", bytes(data), "t") == "a.zip!t: encrypted"


def test_a_way_of_packing_that_is_not_known_is_told():
    data = bytearray(zipped([("t", TEXT)]))
    data[data.index(b"PK\1\2") + 10] = data[8] = 9  # Deflate64
    message = refused("a.zip", bytes(data), "t")
    assert message.startswith("a.zip!t: ") and "method" in message


# Bombs


def allowed(data):
    """What may come out of `data` before it is called a bomb; the second block is being read."""
    return max(archive.FLOOR, archive.RATIO * len(data)) + 2 * archive._BLOCK


@pytest.fixture(name="low_floor")
def _low_floor(monkeypatch):
    monkeypatch.setattr(archive, "FLOOR", 1 << 20)


@pytest.fixture
def blown(tmp_path):
    """The message, and how much came out until then."""

    def blown(name, data, *member):
        path = tmp_path / "kept"
        path.write_bytes(data)
        made = 0
        with pytest.raises(UserError) as error, open_member(path, name, member) as stream:
            while block := stream.read1(1 << 16):
                made += len(block)
        assert "times its size" in str(error.value) and "\n" not in str(error.value)
        return str(error.value), made

    return blown


ZEROS = bytes(20 << 20)
BOMBS = {"z.gz": gzip.compress(ZEROS), "z.bz2": bz2.compress(ZEROS), "z.xz": lzma.compress(ZEROS)}


@pytest.mark.usefixtures("low_floor")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_stopped_early(blown, name):
    message, made = blown(name, BOMBS[name])
    assert message.startswith(f"{name}: unpacks to more than 100 times its size")
    assert made <= allowed(BOMBS[name])


def test_a_bomb_is_stopped_at_64_mebibytes_and_no_sooner(blown):
    little = gzip.compress(bytes(64 << 20))
    assert len(little) < 100_000 and read("z.gz", little) == bytes(64 << 20)
    _, made = blown("z.gz", gzip.compress(bytes(80 << 20)))
    assert (63 << 20) <= made <= (64 << 20)


@pytest.mark.usefixtures("low_floor")
@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.bz2", "a.tar.xz"])
@pytest.mark.parametrize("member", ["t", "z", "u"])
def test_a_bomb_in_a_tar_file_is_stopped_wherever_it_lies(blown, name, member):
    data = pack(name, [("t", TEXT), ("z", ZEROS), ("u", TEXT)])
    assert blown(name, data, member)[1] <= allowed(data)


@pytest.mark.usefixtures("low_floor")
@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_bomb_in_a_zip_file_is_stopped(blown, how):
    data = zipped([("t", TEXT), ("z", ZEROS)], how)
    assert blown("a.zip", data, "z")[1] <= allowed(data)
    assert read("a.zip", data, "t") == TEXT


@pytest.mark.usefixtures("low_floor")
@pytest.mark.parametrize("outer", ARCHIVES)
@pytest.mark.parametrize("inner", ["a.tgz", "a.zip"])
def test_a_bomb_in_an_inner_archive_is_stopped(blown, outer, inner):
    data = pack(outer, [(f"in/{inner}", pack(inner, [("z", ZEROS)]))])
    assert blown(outer, data, f"in/{inner}", "z")[1] <= allowed(data)
    data = pack(outer, [("z.gz", BOMBS["z.gz"])])
    assert blown(outer, data, "z.gz")[1] <= allowed(data)


def test_a_bomb_is_told_from_what_lies_beside_it(blown):
    data = tar([("x", LONG + LONG[::-1]), ("z.gz", gzip.compress(bytes(80 << 20)))])
    assert 100 * len(data) > 80 << 20
    for name, packed in (("a.tar", data), ("a.tgz", gzip.compress(data))):
        assert blown(name, packed, "z.gz")[1] <= 64 << 20


def half_bomb(seed):
    """What packs to a 50th, and that to a 20th: no bomb on either level, but on both."""
    draw = random.Random(seed)
    same, packer = draw.randbytes(1024), zlib.compressobj(9, zlib.DEFLATED, 31, 9, zlib.Z_FIXED)
    made, pieces = 0, []
    for _ in range(200):
        piece = same + draw.randbytes(32) + bytes(60 << 10)
        made += len(piece)
        pieces += [packer.compress(piece), packer.flush(zlib.Z_FULL_FLUSH)]
    return made, b"".join(pieces) + packer.flush()


@pytest.mark.usefixtures("low_floor")
def test_what_is_a_bomb_only_on_all_levels_together_is_stopped(blown):
    size, packed = half_bomb(3)
    assert 40 < size / len(packed) < 70
    assert len(read("t.gz", packed)) == size > 10 << 20
    again = tgz([("t.gz", packed)])
    assert 10 < len(packed) / len(again) < 70
    assert blown("a.tgz", again, "t.gz")[1] <= allowed(again)
    again = tgz([("b.zip", zipped([("t.gz", packed)], zipfile.ZIP_STORED))])
    assert blown("a.tgz", again, "b.zip", "t.gz")[1] <= allowed(again)


@pytest.mark.usefixtures("low_floor")
def test_an_inner_zip_that_is_a_bomb_is_not_spooled_to_its_end(blown):
    message, made = blown("a.tgz", tgz([("b.zip", ZEROS)]), "b.zip", "t")
    assert made == 0 and int(message.split()[-2]) <= allowed(tgz([("b.zip", ZEROS)]))


@pytest.mark.parametrize("size", [9 << 30, 1 << 60, -512, -1])
def test_sizes_that_are_not_true_are_told_at_once(size):
    first = entry("a").tobuf(tarfile.GNU_FORMAT)
    block = bytearray(first)
    block[124:136] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    data = bytes(block) + tar([("t", TEXT)])
    for name, packed in (("a.tar", data), ("a.tgz", gzip.compress(data))):
        for member in ("a", "t"):
            assert refused(name, packed, member).startswith(name)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_names_of_untrue_length_are_told_at_once(kind):
    block = bytearray(entry("a", type=kind).tobuf(tarfile.GNU_FORMAT))
    block[124:136] = tarfile.itn(1 << 60, 12, tarfile.GNU_FORMAT)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    data = bytes(block) + tar([("t", TEXT)])
    for name, packed in (("a.tar", data), ("a.tgz", gzip.compress(data))):
        assert refused(name, packed, "t").startswith(name)
