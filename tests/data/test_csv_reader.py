"""CSV: a row is a physical line, and none swallows, splits or retypes another."""

from __future__ import annotations

import gzip
import importlib.util
import io
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.csv_reference import plain, reference_column, reference_rows
from zerodelta.data.arrow_cells import ArrowChunks
from zerodelta.data.csv import (
    CsvFormat,
    Wanted,
    count_lines,
    csv_reader,
    line_cells,
    line_chunks,
    read_lines,
)
from zerodelta.data.readers import Reader
from zerodelta.errors import ParameterError

FORMS = [
    CsvFormat(header=False),
    CsvFormat(header=False, quote=None),
    CsvFormat(header=False, quote="'", delimiter="|", encoding="cp1253"),
    CsvFormat(header=False, delimiter=";", decimal=",", quote=None),
    CsvFormat(header=False, delimiter=";", decimal=","),
    CsvFormat(header=False, delimiter="\t"),
    CsvFormat(header=False, encoding="latin-1", quote=None),
    CsvFormat(header=False, encoding="iso8859-6"),
    CsvFormat(header=False, encoding="cp1252"),
    CsvFormat(header=False, encoding="cp932", delimiter="|"),
    CsvFormat(header=False, encoding="gbk"),
]
WANTED: Wanted = ((0, True), (1, False), (2, True), (1, True), (4, False))

CELLS = [b"1", b" 2.5 ", b"-3,5", b"1e3", b"x", b"", b"NA", b"true", b"7"]
PIECES = [
    *(b"1", b"+2", b".5", b"1e999", b"-inf", b"nan", b"0x1", b"1_0", b"e", b"9" * 30, b"FALSE"),
    *(b'"', b'""', b"'", b"\r", b"\t", b"\x00", b",", b";", b"|", b".", b" ", b"-", b"\\"),
    *("é".encode(), b"\xe9", b"\xff", b"\xef\xbb\xbf", b"\x81|", b"\x0b", "\u2028".encode()),
    *("٣".encode(), b"\xed\xb2\x81", b"\xdf\xa1"),
]


@st.composite
def files(draw: Any) -> tuple[CsvFormat, bytes]:
    """A form and lines, most of them in order, some not."""
    form = draw(st.sampled_from(FORMS))
    mark = form.delimiter.encode()
    quote = (form.quote or "").encode()
    lines = []
    for _ in range(draw(st.integers(0, 8))):
        if draw(st.booleans()):
            cells = draw(st.lists(st.sampled_from(CELLS), min_size=3, max_size=3))
            quoted = draw(st.booleans())
            lines.append(mark.join(quote + cell + quote if quoted else cell for cell in cells))
        else:
            pieces = draw(st.lists(st.sampled_from([*PIECES, mark, mark, quote]), max_size=9))
            lines.append(b"".join(pieces))
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    return form, end.join(lines) + draw(st.sampled_from([b"", end]))


def expected(data: bytes, form: CsvFormat, wanted: Wanted, **limits: int) -> list[list[Any]]:
    rows = reference_rows(data, form, **limits)
    return [reference_column(rows, at, form, as_number=number) for at, number in wanted]


def joined(batches: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    columns: list[list[Any]] = [[] for _ in range(width)]
    for batch in batches:
        for column, found in zip(columns, batch, strict=True):
            column += plain(found)
    return columns


def read(reader: Reader, columns: tuple[str, ...], numbers: set[str], batch: int = 99) -> Any:
    parts = reader.parts(columns, batch=batch, numbers=frozenset(numbers))
    return joined([found for part in parts for found in part()], len(columns))


@settings(max_examples=300, deadline=None)
@given(files(), st.sampled_from([1, 3, 16, 1 << 20]), st.sampled_from([12, 40, 1 << 20]))
def test_chunks_of_lines_are_read_as_line_by_line(
    file: tuple[CsvFormat, bytes], block: int, longest: int
) -> None:
    form, data = file
    data = data.removeprefix(b"\xef\xbb\xbf")
    arrow, ours = ArrowChunks(form, 3, WANTED), []
    chunks = list(line_chunks(io.BytesIO(data), block=block, longest=longest))
    for chunk in chunks:
        ours.append(read_lines(chunk.split(b"\n")[:-1], form, WANTED))
    whole = expected(data, form, WANTED, longest=longest)
    assert joined(ours, len(WANTED)) == whole
    assert joined([arrow.read(chunk) for chunk in chunks], len(WANTED)) == whole
    assert count_lines(io.BytesIO(data)) == len(whole[0])


@pytest.mark.parametrize(
    ("lines", "odd"),
    [
        ([b"\xef\xbb\xbf1", b"\xef\xbb\xbf1"], [0]),  # PyArrow takes it off the first line only
        ([b"1\r", b"1\r2", b"1\r\r", b"\r"], [1, 2]),
        ([b'"1"', b'"1', b'1"', b'"', b'""', b'"""', b'""""'], [1, 2, 3, 5]),
        ([b'"1",2', b'"1"2', b'1"2"', b'1,"2"', b' "1"', b'"1" ', b'"1"\r'], [1, 2, 4, 5]),
        ([b'"1,2""3",4', b'"1""', b'"1"",2', b'1,"",2', b'"",""', b'"","'], [1, 2, 5]),
        ([b'"1', b'1""', b'"1"', b'"1"1', b'2"'], [0, 1, 3, 4]),
    ],
)
def test_lines_that_pyarrow_may_see_otherwise_are_read_alone(
    lines: list[bytes], odd: list[int]
) -> None:
    chunk, form = b"\n".join([*lines, b""]), CsvFormat(header=False)
    assert ArrowChunks(form, 1, WANTED)._irregular_lines(chunk).tolist() == odd
    whole = expected(b"\n" + chunk, form, WANTED)  # a mark is not at the start of the file then
    found = joined([ArrowChunks(form, 1, WANTED).read(chunk)], len(WANTED))
    assert found == [column[1:] for column in whole]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([b"", b"1", b"22", b"333\r"])), st.integers(1, 9), st.booleans())
def test_pieces_of_a_file_hold_each_line_once(lines: list[bytes], size: int, ended: bool) -> None:
    data = b"\n".join(lines) + b"\n" * ended
    cuts: list[int | None] = [*range(0, len(data) + 1, size), None]
    found = b""
    for start, stop in pairwise(cuts):
        found += b"".join(line_chunks(io.BytesIO(data), start or 0, stop, block=4))
    assert found == data + (b"" if data.endswith(b"\n") or not data else b"\n")


def test_bytes_that_mean_nothing_do_not_become_a_character() -> None:
    form = CsvFormat(header=False, encoding="iso8859-6")
    data = b"\xdf\xa1,x\n\xc7,y\n"  # as UTF-8 the first two were one
    found = joined([ArrowChunks(form, 2, ((0, False), (1, False))).read(data)], 2)
    assert found == [["", "\u0627"], ["x", "y"]]


GRAMMAR = st.text(alphabet="0123456789.eE+- ,_xinfaIN\t\xa0٣", max_size=8)


@settings(max_examples=300, deadline=None)
@given(st.lists(GRAMMAR, min_size=1, max_size=6), st.sampled_from(".,"))
def test_a_spelled_number_is_that_of_its_cell(cells: list[str], decimal: str) -> None:
    form = CsvFormat(header=False, delimiter=";", decimal=decimal)
    data = "".join(f"{cell};\n" for cell in cells).encode()
    wanted: Wanted = ((0, True),)
    assert joined([ArrowChunks(form, 2, wanted).read(data)], 1) == expected(data, form, wanted)


LINES = [b"%d,town %d,%d.5" % (i, i % 3, i) for i in range(9)]
ODD_LINES = [
    *(b"", b",", b",,,,,,", b"1", b"1,2,3,4,5", b'"', b'"1,2,3', b'1,"2,3', b'1,2,3"', b'"",""x,"'),
    *(b"\r", b"1\r2,3,4", b"1,2,3\r", b"\x00,\x00,\x00", b"\xff,\xfe,\x80", b"\xef\xbb\xbf1,2,3"),
    *("1,2,3".encode("utf-16"), b"\t1,2,\t3", b"inf,nan,-inf", b"1e999,x,-1e999", b"1_0,0x1,1d"),
    *(b"9" * 400 + b",x,1e-400", b"true,yes,FALSE", b"1,2," + b"9" * (1 << 20), b"NULL,NA,?"),
    *(b"," * 5000, "\u2028,\u0085,\x0b,\x0c".encode(), b"#,2,3", b'\\,\\",3', b"a;b;c", b"1,5;2;3"),
]


@pytest.mark.parametrize("place", [0, 4, 8])
@pytest.mark.parametrize("quote", [None, '"'])
@pytest.mark.parametrize("odd", ODD_LINES, ids=lambda odd: repr(odd[:12]))
def test_an_odd_line_changes_no_other(
    odd: bytes, quote: str | None, place: int, tmp_path: Path, capfd: Any
) -> None:
    path, form = tmp_path / "people.csv", CsvFormat(quote=quote)
    columns, numbers = ("a", "b", "c"), {"a", "c"}

    def rows_with(line: bytes) -> Any:
        lines = [*LINES[:place], line, *LINES[place + 1 :]]
        path.write_bytes(b"a,b,c\n" + b"\n".join(lines) + b"\n")
        reader = csv_reader(path, form)
        assert reader.count() == len(LINES)
        found = read(reader, columns, numbers)
        assert found == expected(path.read_bytes(), form, ((0, True), (1, False), (2, True)))
        return list(zip(*found, strict=True))

    usual, changed = rows_with(LINES[place]), rows_with(odd)
    assert len(changed) == len(LINES)
    assert [i for i in range(len(LINES)) if usual[i] != changed[i] and i != place] == []
    assert usual[3 if place != 3 else 5][0] == float(3 if place != 3 else 5)
    assert capfd.readouterr() == ("", "")  # PyArrow, too, must not print a line


def table(path: Path, lines: int = 400) -> Path:
    rows = [f"{i},{'x' * (i % 7)},{i / 8}" for i in range(lines)]
    rows[17], rows[203], rows[311] = "a,b", "1,2,3,4", '"1,\r2'
    rows[99] = "\ufeff7,b,1"  # a mark of UTF-8 is one at the start of a file only
    path.write_bytes("\r\n".join(["a,b,c", *rows]).encode())
    return path


@pytest.mark.parametrize("part", [7, 100, 1 << 24])
@pytest.mark.parametrize("batch", [1, 64, 10_000])
def test_batches_and_parts_change_no_cell(part: int, batch: int, tmp_path: Path) -> None:
    path = table(tmp_path / "people.csv")
    reader = csv_reader(path, part=part)
    found = read(reader, ("c", "b", "a"), {"a", "c"}, batch)
    assert found == expected(path.read_bytes(), CsvFormat(), ((2, True), (1, False), (0, True)))
    parts = reader.parts(("b",), batch=batch)
    assert len(parts) == -(-(path.stat().st_size - 7) // part)
    assert max(len(found[0]) for each in parts for found in each()) <= batch


def test_a_part_can_be_read_again(tmp_path: Path) -> None:
    (part,) = csv_reader(table(tmp_path / "people.csv")).parts(("a",), batch=99)
    assert joined(list(part()), 1) == joined(list(part()), 1)


def test_without_pyarrow_the_cells_are_the_same(tmp_path: Path, monkeypatch: Any) -> None:
    path = table(tmp_path / "people.csv")
    before = read(csv_reader(path), ("a", "b", "c"), {"a", "c"})
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "zerodelta.data.csv.find_spec", lambda name: None if "arrow" in name else found(name)
    )
    monkeypatch.setattr("zerodelta.data.arrow_cells.ArrowChunks", None)
    assert read(csv_reader(path), ("a", "b", "c"), {"a", "c"}) == before


def test_compressed_files_are_read_alike(tmp_path: Path) -> None:
    path = table(tmp_path / "people.csv")
    packed = tmp_path / "people.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    reader = csv_reader(packed)
    assert reader.count() == 400
    assert read(reader, ("a", "b"), {"a"}) == read(csv_reader(path), ("a", "b"), {"a"})


def test_a_broken_archive_says_nothing_of_its_contents(tmp_path: Path) -> None:
    packed = tmp_path / "people.csv.gz"
    lines = b"".join(b"%d\n" % (i * i) for i in range(300_000))
    packed.write_bytes(gzip.compress(b"name\n" + lines)[:-9])
    reader = csv_reader(packed)
    for ask in (reader.count, lambda: read(reader, ("name",), set())):
        with pytest.raises(ParameterError, match="rows that can be read to the end") as raised:
            ask()
        assert raised.value.__cause__ is None
        assert raised.value.__context__ is None


@pytest.mark.parametrize("text", [b"", b"a" * ((1 << 20) + 1) + b"\n1\n"])
def test_a_file_without_a_header_line_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(text)
    with pytest.raises(ParameterError, match="whose first line names the columns"):
        csv_reader(path)


def test_the_first_line_is_not_shown_where_it_may_be_a_person(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"Ada Lovelace,36\n")
    with pytest.raises(ParameterError) as raised:
        csv_reader(path).parts(("Ada",), batch=9)
    assert "Lovelace" not in str(raised.value)
    assert "'Ada'" in str(raised.value)


def test_without_a_header_columns_are_declared_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"\xef\xbb\xbf1,x,9,9\n2\n3,y,9,9\n")
    reader = csv_reader(path, CsvFormat(header=False), declared=("age", "town"))
    assert reader.count() == 3
    assert read(reader, ("town", "age"), {"age"}) == [["x", "", "y"], [1.0, 2.0, 3.0]]


def test_names_of_a_header_may_be_quoted_and_marked(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b'\xef\xbb\xbf"age","the ""town""",\xff\n"1","x\n')
    reader = csv_reader(path)
    assert reader.names == ("age", 'the "town"', "")
    assert read(reader, ("age", 'the "town"'), {"age"}) == [[1.0], ["x"]]


@pytest.mark.parametrize("quote", ['"', "'", None])
def test_header_and_cells_are_unquoted_alike(quote: str | None, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"\"age\",'town'\n\"1\",'oslo'\n")
    age = '"age"' if quote != '"' else "age"
    town = "'town'" if quote != "'" else "town"
    reader = csv_reader(path, CsvFormat(quote=quote))
    assert reader.names == (age, town)
    found = read(reader, (age, town), {age})
    assert found == [[1.0 if quote == '"' else None], ["oslo" if quote == "'" else "'oslo'"]]


@pytest.mark.parametrize("place", [0, 5000])
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("marks", [b'",1 ', b'"\r,1'])
def test_every_short_line_of_quotes_is_read_alike(marks: bytes, width: int, place: int) -> None:
    """All lines of up to six such characters in one chunk, where most of them are odd."""
    lines = [bytes(line) for length in range(7) for line in product(marks, repeat=length)]
    chunk = b"\n".join([*lines[place:], *lines[:place], b""])
    form = CsvFormat(header=False)
    found = joined([ArrowChunks(form, width, WANTED).read(chunk)], len(WANTED))
    assert found == expected(chunk, form, WANTED)


def test_quoted_lines_are_read_by_pyarrow(monkeypatch: Any) -> None:
    chunk = b'"1","oslo, ""the"" town","2"\r\n"1","",2\n' * 100 + b'1,5" pipe,"2"\n'
    alone: list[int] = []

    def counted(lines: list[bytes], *rest: Any) -> Any:
        alone.append(len(lines))
        return read_lines(lines, *rest)

    monkeypatch.setattr("zerodelta.data.arrow_cells.read_lines", counted)
    found = joined([ArrowChunks(CsvFormat(), 3, ((1, False), (2, True))).read(chunk)], 2)
    assert alone == [1]
    assert found == [['oslo, "the" town', ""] * 100 + ['5" pipe'], [2.0] * 201]


@pytest.mark.parametrize("name", ["a", ""])
def test_a_column_that_is_there_twice_is_refused_when_asked_for(name: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(f"{name},{name},c\n1,2,3\n".encode())
    assert read(csv_reader(path), ("c",), {"c"}) == [[3.0]]
    with pytest.raises(ParameterError, match="one column of that name"):
        csv_reader(path).parts((name,), batch=9)


def test_files_of_a_pattern_are_sorted_and_matched_by_names(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_bytes(b"y,x\n1,2\n")
    (tmp_path / "a.csv").write_bytes(b"x,y\n3,4\n5,6")
    reader = csv_reader(str(tmp_path / "*.csv"))
    assert read(reader, ("x",), {"x"}) == [[3.0, 5.0, 2.0]]
    assert reader.count() == 3
    assert reader.text == "2 CSV files *.csv"
    (tmp_path / "c.csv").write_bytes(b"x,z\n1,2\n")
    with pytest.raises(ParameterError, match="the same column names"):
        csv_reader(str(tmp_path / "*.csv"))


@pytest.mark.parametrize(
    "encoding", ["utf-16", "UTF-16LE", "utf-32", "utf-7", "iso2022_jp", "hz", "cp037", "rot13", "x"]
)
def test_encodings_in_which_lines_cannot_be_cut_are_refused(encoding: str) -> None:
    with pytest.raises(ParameterError, match="convert the file to UTF-8"):
        CsvFormat(encoding=encoding)


@pytest.mark.parametrize("encoding", ["UTF8", "utf-8-sig", "ascii", "latin1", "windows-1252"])
def test_encodings_have_many_names(encoding: str) -> None:
    assert line_cells(b"a,b", CsvFormat(encoding=encoding)) == ["a", "b"]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"delimiter": each} for each in ("", ",,", "\n", "\r", "a", "1", '"', "é", None)),
        *({"decimal": each} for each in (",", ";", "", None)),
        *({"quote": each} for each in (",", "", "''", 1)),
        *({"header": each} for each in (1, None, "yes")),
    ],
    ids=str,
)
def test_wrong_forms_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        CsvFormat(**wrong)


def test_many_malformed_lines_are_rows(tmp_path: Path) -> None:
    path, lines = tmp_path / "people.csv", 100_000
    path.write_bytes(b"a,b\n" + b"x\n" * lines)
    reader = csv_reader(path)
    assert reader.count() == lines
    assert read(reader, ("a", "b"), {"a", "b"}) == [[None] * lines] * 2


def test_ten_thousand_columns(tmp_path: Path) -> None:
    path, width = tmp_path / "wide.csv", 10_000
    names = ",".join(f"c{i}" for i in range(width))
    rows = [",".join(str(i + j) for i in range(width)) for j in range(30)]
    path.write_text("\n".join([names, *rows]))
    found = read(csv_reader(path), ("c9999", "c0"), {"c9999", "c0"})
    assert found == [[float(9999 + j) for j in range(30)], [float(j) for j in range(30)]]


@pytest.mark.parametrize("text", [b"a,b", b"a,b\n"])
def test_a_file_of_no_lines_has_no_rows(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(text)
    assert csv_reader(path).count() == 0
    assert read(csv_reader(path), ("a",), {"a"}) == [[]]
