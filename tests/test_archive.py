import bz2
import errno
import gzip
import io
import lzma
import random
import tarfile
import tracemalloc
import zipfile
import zlib

import pytest

from bleuprint import archive
from bleuprint.archive import Damaged, open_member
from bleuprint.errors import UserError

LINES = [b"Guten Tag.\n", "Bis\u2028bald!\x0b\x1c\r\n".encode(), b"\n", b"without an end"]
TEXT = b"".join(LINES)
# Hard to pack, and more than a reader takes at once.
LONG = random.Random(1).randbytes(400_000)
MODES = {
    "a.tar": "w",
    "a.tar.gz": "w:gz",
    "a.tgz": "w:gz",
    "a.tar.bz2": "w:bz2",
    "a.tar.xz": "w:xz",
}


def entry(name, size=0, **other):
    info = tarfile.TarInfo(name)
    info.size = size
    for key, value in other.items():
        setattr(info, key, value)
    return info


def tar(files, mode="w"):
    """A tar file of (name or TarInfo, body)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as made:
        for name, body in files:
            info = entry(name, len(body)) if isinstance(name, str) else name
            made.addfile(info, io.BytesIO(body))
    return out.getvalue()


def tgz(files):
    return tar(files, "w:gz")


def zipped(files, how=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as made:
        for name, body in files:
            made.writestr(name, body)
    return out.getvalue()


def pack(name, files):
    return zipped(files) if name.endswith(".zip") else tar(files, MODES[name])


FILES = [("b/other.en", LONG), ("b/text.de", TEXT), ("b/last.fr", LONG)]
ARCHIVES = [*MODES, "a.zip"]
PACKED = {name: pack(name, FILES) for name in ARCHIVES}


@pytest.fixture
def read(tmp_path):
    def read(name, data, *member):
        path = tmp_path / "kept"
        path.write_bytes(data)
        with open_member(path, name, member) as stream:
            return stream.read()

    return read


@pytest.fixture
def refused(read):
    def refused(*arguments):
        with pytest.raises(UserError) as error:
            read(*arguments)
        assert "\n" not in str(error.value)
        return str(error.value)

    return refused


# What is read


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("member", FILES, ids=lambda file: file[0])
def test_a_member_of_every_kind_of_archive(read, name, member):
    assert read(name, PACKED[name], member[0]) == member[1]


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_files_packed_otherwise(read, how):
    assert read("a.zip", zipped(FILES, how), "b/text.de") == TEXT


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("t.gz", gzip.compress(TEXT)),
        ("t.gz", gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:])),
        ("t.bz2", bz2.compress(TEXT)),
        ("t.xz", lzma.compress(TEXT)),
        ("t.de", TEXT),
        ("t.gzip", TEXT),
        ("t.gz.txt", TEXT),
    ],
)
def test_a_single_file_is_unpacked_going_by_its_name_alone_or_as_a_member(read, name, packed):
    assert read(name, packed) == TEXT
    assert read("a.tgz", tgz([(f"b/{name}", packed)]), f"b/{name}") == TEXT
    assert read("a.zip", zipped([(f"b/{name}", packed)]), f"b/{name}") == TEXT


@pytest.mark.parametrize(
    "name", ["http://h/a.TGZ", "https://h/r/a.tgz?download=1", "https://h/get?file=a.tgz"]
)
def test_endings_in_capitals_and_of_addresses_with_a_query(read, name):
    assert read(name, PACKED["a.tgz"], "b/text.de") == TEXT


def test_archives_in_archives(read):
    inner = [("b/text.de", TEXT)]
    for name in ARCHIVES:
        for other in ARCHIVES:
            data = pack(name, [("x", LINES[0]), (f"in/{other}", pack(other, inner)), ("y", b"")])
            assert read(name, data, f"in/{other}", "b/text.de") == TEXT
    deep = zipped([("t.gz", gzip.compress(TEXT))])
    deep = tgz([("1/b.zip", deep)])
    deep = tar([("2/b.tgz", zipped([("3/b.tgz", deep)]))])
    with pytest.raises(UserError):
        read("a.tar", deep, "2/b.tgz", "3/b.tgz", "1/b.zip", "t.gz")  # a zip called .tgz
    deep = tar([("2/b.zip", zipped([("3/b.tgz", tgz([("1/b.zip", zipped(inner))]))]))])
    assert read("a.tar", deep, "2/b.zip", "3/b.tgz", "1/b.zip", "b/text.de") == TEXT


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_leading_dot_does_not_matter(read, name):
    assert read(name, pack(name, [("./b/t", TEXT)]), "b/t") == TEXT
    assert read(name, pack(name, [("b/t", TEXT)]), "./b/t") == TEXT


@pytest.mark.parametrize("name", ARCHIVES)
def test_names_that_are_long_or_not_ascii(read, name):
    member = f"größe/{'lang/' * 60}日本語.txt"
    assert read(name, pack(name, [(member, TEXT)]), member) == TEXT


def test_lines_end_where_they_do_in_a_file(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(PACKED["a.tgz"])
    with open_member(path, "a.tgz", ["b/text.de"]) as stream:
        assert list(stream) == LINES


def test_what_is_left_unread_does_no_harm(tmp_path):
    path = tmp_path / "kept"
    for name in ARCHIVES:
        path.write_bytes(PACKED[name])
        with open_member(path, name, ["b/other.en"]) as stream:
            assert stream.read(10) == LONG[:10]


def test_mistakes_of_who_reads_are_not_taken_for_damage(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(PACKED["a.tgz"][:-100])
    with (
        pytest.raises(ValueError, match="mine") as error,
        open_member(path, "a.tgz", ["b/text.de"]),
    ):
        raise ValueError("mine")
    assert not isinstance(error.value, UserError)


def test_nothing_is_written_anywhere(tmp_path, monkeypatch):
    outside, inside = tmp_path / "outside", tmp_path / "in" / "side"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    names = ["../../outside", str(outside), "b/text.de"]
    path = tmp_path / "kept"
    for kind in ARCHIVES:
        path.write_bytes(pack(kind, [(name, TEXT) for name in names]))
        with open_member(path, kind, ["b/text.de"]) as stream:
            assert stream.read() == TEXT
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["in", "kept", "side"]


# What an archive lacks, or holds in another way


@pytest.mark.parametrize("name", ARCHIVES)
def test_the_nearest_to_a_missing_member_are_named(refused, name):
    message = refused(name, PACKED[name], "b/texts.de")
    assert message.startswith(f"{name}: no b/texts.de in it; near to it are b/text.de")
    message = refused(name, pack(name, [("./1", b""), ("2", b""), ("3", b""), ("4", b"")]), "text")
    assert message == f"{name}: no text in it; it holds 1, 2, 3"
    assert refused(name, pack(name, []), "text") == f"{name}: no text in it; it holds nothing"


def test_a_member_missing_from_an_inner_archive_is_told_with_the_way_there(refused):
    data = tgz([("in.tgz", PACKED["a.tgz"])])
    assert refused("a.tgz", data, "in.tgz", "text.de").startswith("a.tgz!in.tgz: no text.de in it")


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        (entry("b", type=tarfile.DIRTYPE), "folder"),
        (entry("b", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "link"),
        (entry("b", type=tarfile.LNKTYPE, linkname="a"), "link"),
        (entry("b", type=tarfile.FIFOTYPE), "special"),
        (entry("b", type=tarfile.CHRTYPE), "special"),
    ],
)
def test_a_tar_member_that_is_no_regular_file_is_refused(refused, info, kind):
    assert refused("a.tgz", tgz([("a", TEXT), (info, b"")]), "b") == (
        f"a.tgz!b: not a regular file: {kind}"
    )


def sparse(name, size):
    """The header of a file that is one hole."""
    block = bytearray(entry(name).tobuf(tarfile.GNU_FORMAT))
    block[156:157] = tarfile.GNUTYPE_SPARSE
    block[386:410] = b"%011o\0%011o\0" % (size, 0)
    block[483:495] = b"%011o\0" % size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def test_a_tar_member_of_holes_is_refused_or_gone_past(read, refused):
    data = sparse("b", 7 << 30) + tar([("t", TEXT)])
    with tarfile.open(fileobj=io.BytesIO(data)) as made:
        assert made.getmember("b").size == 7 << 30 and made.getmember("b").issparse()
    assert refused("a.tar", data, "b") == "a.tar!b: not a regular file: special"
    assert read("a.tar", data, "t") == read("a.tgz", gzip.compress(data), "t") == TEXT


def test_a_zip_member_that_is_no_regular_file_is_refused(refused):
    link = zipfile.ZipInfo("b")
    link.external_attr = 0o120777 << 16
    folder = zipfile.ZipInfo("c/")
    data = zipped([(link, b"/etc/passwd"), (folder, b"")])
    assert refused("a.zip", data, "b") == "a.zip!b: not a regular file"
    assert refused("a.zip", data, "c/") == "a.zip!c/: not a regular file"


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_refused(read, refused, name):
    data = pack(name, [("b/t", TEXT), ("x", LONG), ("./b/t", TEXT[::-1]), ("u", TEXT)])
    assert refused(name, data, "b/t") == f"{name}: b/t is in it more than once"
    assert read(name, data, "u") == TEXT
    outer = tgz([(f"in/{name}", data)])
    assert refused("o.tgz", outer, f"in/{name}", "b/t").startswith(f"o.tgz!in/{name}: b/t is in")


def test_an_inner_archive_that_is_there_twice_is_refused(refused):
    data = tgz([("in.tgz", PACKED["a.tgz"]), ("in.tgz", PACKED["a.tgz"])])
    assert refused("a.tgz", data, "in.tgz", "b/text.de") == "a.tgz: in.tgz is in it more than once"


def test_a_member_of_what_is_no_archive_is_refused(refused):
    assert refused("a.txt", TEXT, "b").startswith("a.txt: no archive (.tar, ")
    assert refused("a.gz", gzip.compress(TEXT), "b").startswith("a.gz: no archive")
    assert refused("a.tgz", PACKED["a.tgz"], "b/text.de", "c").startswith(
        "a.tgz!b/text.de: no archive"
    )


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_without_a_member_is_refused(refused, name):
    data = PACKED[name]
    assert refused(name, data) == f"{name}: an archive: member must name a file in it"
    outer = tar([(name, data)])
    assert refused("o.tar", outer, name).startswith(f"o.tar!{name}: an archive: member must")


# Damage


SINGLE = {
    "t.gz": gzip.compress(LONG),
    "t.bz2": bz2.compress(LONG),
    "t.xz": lzma.compress(LONG),
}


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.zip"])
@pytest.mark.parametrize("left", [0.99999, 0.9, 0.5, 0.1, 0.0001])
def test_a_truncated_archive_is_told_wherever_the_member_lies(refused, name, left):
    data = PACKED[name][: int(len(PACKED[name]) * left)]
    for member, _ in FILES:
        assert refused(name, data, member).startswith(name)


def test_a_tar_file_truncated_within_a_member_or_a_header_is_told(refused):
    data = tar(FILES)
    for end in (len(LONG) // 2, len(LONG) + 1000, len(data) - 11_000):
        assert "truncated or damaged" in refused("a.tar", data[:end], "b/last.fr")


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("left", [0.99999, 0.9, 0.5, 0.0001])
def test_a_truncated_file_is_told(refused, name, left):
    data = SINGLE[name][: int(len(SINGLE[name]) * left)]
    assert refused(name, data).startswith(f"{name}: truncated or damaged")
    message = refused("a.tgz", tgz([(name, data)]), name)
    assert message.startswith(f"a.tgz!{name}: truncated or damaged")


@pytest.mark.parametrize("name", [*ARCHIVES, *SINGLE])
def test_an_empty_file_is_told(refused, name):
    members = [FILES[0][0]] if name in ARCHIVES else []
    assert refused(name, b"", *members).startswith(f"{name}: ")
    message = refused("o.tgz", tgz([(name, b"")]), name, *members)
    assert message.startswith(f"o.tgz!{name}: ")


@pytest.mark.parametrize("name", [*ARCHIVES, *SINGLE])
def test_what_is_not_what_its_name_says_is_told(refused, name):
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


def test_damage_is_told_from_other_mistakes(read):
    for name, data in (("a.tgz", PACKED["a.tgz"][:-9]), ("a.zip", TEXT), ("a.tgz", b"")):
        with pytest.raises(Damaged):
            read(name, data, "b/text.de")
    with pytest.raises(UserError) as error:
        read("a.tgz", PACKED["a.tgz"], "b/no")
    assert not isinstance(error.value, Damaged)


def test_a_damaged_header_is_not_taken_for_the_end(refused):
    data = bytearray(tar([("a", TEXT), ("b", TEXT), ("c", TEXT)]))
    data[1024 + 5] ^= 1  # in the header of b
    assert "truncated or damaged" in refused("a.tar", bytes(data), "c")
    assert "truncated or damaged" in refused("a.tar", bytes(data), "a")


@pytest.mark.parametrize("name", MODES)
def test_a_disk_that_fails_is_not_taken_for_a_damaged_file(read, monkeypatch, name):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(archive._Disk, "read", fail)
    with pytest.raises(OSError, match="Input/output error"):
        read(name, PACKED[name], "b/text.de")


def test_an_encrypted_member_is_told(refused):
    data = bytearray(zipped([("t", TEXT)]))
    data[data.index(b"PK\1\2") + 8] |= 1
    data[6] |= 1
    assert refused("a.zip", bytes(data), "t") == "a.zip!t: encrypted"


def test_a_way_of_packing_that_is_not_known_is_told(refused):
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


def test_a_bomb_is_stopped_at_64_mebibytes_and_no_sooner(blown, read):
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
def test_a_bomb_in_a_zip_file_is_stopped(blown, read, how):
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
def test_what_is_a_bomb_only_on_all_levels_together_is_stopped(read, blown):
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
def test_sizes_that_are_not_true_are_told_at_once(refused, size):
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
def test_names_of_untrue_length_are_told_at_once(refused, kind):
    block = bytearray(entry("a", type=kind).tobuf(tarfile.GNU_FORMAT))
    block[124:136] = tarfile.itn(1 << 60, 12, tarfile.GNU_FORMAT)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    data = bytes(block) + tar([("t", TEXT)])
    for name, packed in (("a.tar", data), ("a.tgz", gzip.compress(data))):
        assert refused(name, packed, "t").startswith(name)


# Cost


def peak(path, name, member):
    tracemalloc.start()
    with open_member(path, name, [member]) as stream:
        stream.read()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("name", ["a.tar", "a.tgz"])
def test_memory_does_not_grow_with_the_members_of_a_tar_file(tmp_path, monkeypatch, name):
    monkeypatch.setattr(archive, "_NAMES", 100)
    peaks = []
    for count in (1000, 3000):
        (tmp_path / "kept").write_bytes(pack(name, [(f"{i:09d}", b"") for i in range(count)]))
        peak(tmp_path / "kept", name, "000000001")
        peaks.append(peak(tmp_path / "kept", name, f"{count - 1:09d}"))
    assert peaks[1] < 1.1 * peaks[0]


@pytest.fixture
def taken(monkeypatch):
    """Bytes read from files."""
    counts = []
    read = archive._Disk.read

    def counted(disk, size=-1):
        data = read(disk, size)
        counts.append(len(data))
        return data

    monkeypatch.setattr(archive._Disk, "read", counted)
    return counts


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.bz2", "a.tar.xz"])
def test_a_packed_archive_is_gone_through_once_for_a_member(read, taken, name):
    for member, body in FILES:
        taken.clear()
        assert read(name, PACKED[name], member) == body
        assert sum(taken) == len(PACKED[name])


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_of_an_archive_with_places_to_go_to_little_more_than_the_member_is_read(read, taken, name):
    assert read(name, PACKED[name], "b/text.de") == TEXT
    assert sum(taken) < 50_000
