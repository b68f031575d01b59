"""Files become tables, or one sentence says why not."""

import gzip
import hashlib
import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from probgap.exceptions import InvalidInputError, MissingLibraryError
from probgap.tables import TableReader, read_table

PLAIN = b"a,b\n1,x\n2,y\n3,\n"


def parquet(table, **options):
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def rows(data):
    return read_table(io.BytesIO(data)).frame


def chunks(data):
    with TableReader(io.BytesIO(data)) as reader:
        return list(reader)


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (PLAIN, None),
        (PLAIN.replace(b",", b"\t"), "tab separated"),
        (PLAIN.replace(b",", b";"), "semicolon separated"),
        (PLAIN.replace(b",", b"|"), "bar separated"),
        (b"sep=;\n" + PLAIN.replace(b",", b";"), "semicolon separated"),
        (PLAIN.replace(b"\n", b"\r\n"), None),
        (PLAIN.replace(b"\n", b"\r"), None),
        (PLAIN.rstrip(b"\n,"), None),
        (b"\n \n" + PLAIN, None),
        (b"\xef\xbb\xbf" + PLAIN, None),
        (PLAIN.decode().encode("utf-16"), "read as UTF-16"),
        (b"\xfe\xff" + PLAIN.decode().encode("utf-16-be"), "read as UTF-16"),
        (PLAIN.decode().encode("utf-32"), "read as UTF-32"),
        (gzip.compress(PLAIN, mtime=0), "gzipped"),
        (
            gzip.compress(PLAIN[:9], mtime=0) + gzip.compress(PLAIN[9:], mtime=0),
            "gzipped",
        ),
        (b'"a","b"\n"1","x"\n2,y\n"3",""\n', None),
    ],
)
def test_one_table_in_many_dresses(data, note):
    if data == PLAIN.rstrip(b"\n,"):
        data += b","
    table = read_table(io.BytesIO(data))
    assert list(table.frame.columns) == ["a", "b"]
    assert table.frame["a"].tolist() == ["1", "2", "3"]
    assert table.frame["b"].tolist()[:2] == ["x", "y"]
    assert table.frame["b"].isna().tolist() == [False, False, True]
    assert table.notes == (() if note is None else (note,))
    assert table.sha256 == hashlib.sha256(data).hexdigest()


def test_a_file_is_known_by_its_content_not_its_name(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes(gzip.compress(parquet(pa.table({"a": [1, 2]}))))
    table = read_table(path)
    assert table.name == "odd.csv"
    assert table.frame["a"].tolist() == [1, 2]
    assert table.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_parquet_from_a_path_has_its_hash_and_progress(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet(pa.table({"a": list(range(20_000))})))
    assert read_table(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    with TableReader(path, chunk_rows=9_000) as reader:
        read = [(len(chunk), reader.bytes_read) for chunk in reader]
    assert [n for n, _ in read] == [9_000, 9_000, 2_000]
    assert 0 < read[0][1] < read[-1][1] == reader.n_bytes


def test_a_file_named_tsv_is_cut_at_tabs_alone(tmp_path):
    for name, pack in (("one.tsv", bytes), ("ONE.TSV.GZ", gzip.compress)):
        (tmp_path / name).write_bytes(pack(b"message\nhi, there\nno; really\n"))
        table = read_table(tmp_path / name)
        assert table.frame["message"].tolist() == ["hi, there", "no; really"]
    (tmp_path / "two.tsv").write_bytes(b"a,b\tc\n1,2\t3\n4,5\t6\n")
    assert list(read_table(tmp_path / "two.tsv").frame) == ["a,b", "c"]


@pytest.mark.parametrize(
    "data",
    [
        b"# exported on Monday\na,b\n1,2\n",
        b"# one, two, three\n#\na;b\n1;2\n",
        b"##source=x\n#a\tb\n1\t2\n",
        b"\n# a note\nmessage\nhi\n",
    ],
)
def test_comments_above_the_header_are_named_with_a_remedy(data):
    with pytest.raises(InvalidInputError, match=r"comments.*'#.*; remove the lines"):
        rows(data)


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"#a,b\n1,2\n", ["#a", "b"]),
        (b"# a,b\n1,2\n", ["# a", "b"]),
        (b"#a,b\n#1,2\n3,4\n", ["#a", "b"]),
        (b"#tag\n#x\n#y\n", ["#tag"]),
    ],
)
def test_a_header_may_begin_with_the_sign_of_a_comment(data, names):
    assert list(rows(data)) == names


@pytest.mark.parametrize("source", ["data", "data/p*.csv"])
def test_several_csv_files_are_one_table(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "p2.csv").write_text("b;a;c\n4;3;9\n")
    (folder / "p1.csv").write_text("a,b\n1,2\n")
    for name, content in (("p0.csv", "a,b\n"), (".p.csv", "x\n1\n"), ("note", "?")):
        (folder / name).write_text(content)
    table = read_table(source)
    assert table.frame.to_dict("list") == {"a": ["1", "3"], "b": ["2", "4"]}
    assert (table.name, table.files) == (
        source.rpartition("/")[2],
        ("data/p1.csv", "data/p2.csv"),
    )
    assert "left out of p2.csv, not in all files: 'c'" in table.notes
    assert table.sha256 != read_table(folder / "p1.csv").sha256
    (folder / "p3.csv").write_text("a,bb\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"p3.csv has no column 'b'"):
        read_table(source)


def test_several_parquet_files_are_one_table_whatever_their_types(tmp_path):
    pd.DataFrame({"a": [1, 2]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"a": ["x"]}).to_parquet(tmp_path / "2.parquet")
    pd.DataFrame({"a": []}).to_parquet(tmp_path / "0.parquet")
    (tmp_path / "other.csv").write_text("b\n1\n")
    assert read_table(tmp_path).frame["a"].tolist() == [1, 2, "x"]


def workbook(*sheets):
    """An Excel file with a sheet for each list of rows."""
    book = pytest.importorskip("openpyxl").Workbook()
    book.remove(book.active)
    for lines in sheets:
        sheet = book.create_sheet()
        for line in lines:
            sheet.append(line)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


LINES = [
    [],
    ["id", "size", "when", "ok", None],
    [1, 2.5, pd.Timestamp("2020-01-31").to_pydatetime(), True],
    [],
    [2, "#DIV/0!", pd.Timestamp("2020-02-01 10:30").to_pydatetime(), None],
    [3.0, "NA", None, False],
]


def test_excel_is_read_as_if_it_were_csv(tmp_path):
    data = workbook(LINES, [["x"], [1]])
    expected = {
        "id": ["1", "2", "3"],
        "size": ["2.5", None, "NA"],
        "when": ["2020-01-31", "2020-02-01 10:30:00", None],
        "ok": ["true", None, "false"],
    }
    gzipped = gzip.compress(
        data, mtime=0
    )  # without the time of day, the same bytes every time
    (tmp_path / "t.xlsx").write_bytes(data)
    for source in (tmp_path / "t.xlsx", io.BytesIO(gzipped)):
        table = read_table(source)
        frame = table.frame.astype(object)
        assert frame.where(frame.notna(), None).to_dict("list") == expected
        assert "the sheet 'Sheet', one of 2" in table.notes
    assert table.sha256 == hashlib.sha256(gzipped).hexdigest()
    with TableReader(tmp_path / "t.xlsx", chunk_rows=2, columns=["ok"]) as reader:
        assert [list(chunk["ok"].index) for chunk in reader] == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "is empty"),
        ([["a", "b"]], "has a header but no rows"),
        ([[1, 2], [3, 4]], "only numbers"),
        ([["a", "a"], [3, 4]], "both named 'a'"),
        ([["a"], [], [3, 4]], "2 cells in row 3, but 1 in its header"),
    ],
)
def test_bad_sheets_give_one_sentence(lines, says):
    with pytest.raises(InvalidInputError, match=says):
        rows(workbook(lines))


def test_what_is_needed_for_excel_is_named(monkeypatch):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("other", "")
    with pytest.raises(InvalidInputError, match="a zip archive, not"):
        rows(stream.getvalue())
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("xl/workbook.xml", "")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingLibraryError, match=r"probgap\[excel\]"):
        rows(stream.getvalue())


def test_a_cut_workbook_is_no_traceback():
    data = workbook(LINES)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    for name in parts:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as file:
            for other, content in parts.items():
                file.writestr(other, content[: len(content) // 2 * (other == name)])
        with pytest.raises(InvalidInputError, match="Excel"):
            rows(stream.getvalue())


def test_standard_input(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(PLAIN))
    monkeypatch.setattr(sys, "stdin", stream)
    table = read_table("-")
    assert table.name == "standard input"
    assert len(table.frame) == 3


def test_latin1_is_read_where_utf8_fails_wherever_that_is():
    head = "a,b\n" + "é,1\n" * 3
    data = head.encode() + "ü,2\n".encode("latin-1") + b"\x80,3\n\x81,4\n"
    table = read_table(io.BytesIO(data))
    assert table.frame["a"].tolist() == ["é", "é", "é", "ü", "€", "\x81"]
    assert table.notes == ("read as latin-1 where it is not UTF-8",)
    late = b"a,b\n" + b"x,1\n" * 400_000 + b"\xfc,2\n"
    with TableReader(io.BytesIO(late)) as reader:
        *_, last = reader
        assert last["a"].iloc[-1] == "ü"
        assert reader.notes == ("read as latin-1 where it is not UTF-8",)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_a_character_or_a_row_may_lie_on_the_border_of_two_blocks(encoding):
    data = ("a,b\n" + f"éßñ€{'x' * 3000},1\n" * 1500).encode(encoding)
    frame = rows(data)
    assert set(frame["a"]) == {f"éßñ€{'x' * 3000}"}


def test_decimal_commas_in_a_file_with_semicolons():
    table = read_table(io.BytesIO(b'a;b;c\n3,5;1.234,5;"x, y"\n-2,25;7;\n'))
    assert table.frame["a"].tolist() == ["3.5", "-2.25"]
    assert table.frame["b"].tolist() == ["1234.5", "7"]
    assert table.frame["c"].iloc[0] == "x, y"
    assert "decimal commas read as points" in table.notes


def test_headers_are_tidied_with_a_note():
    table = read_table(io.BytesIO('," b ","c\nd",😀\n1,2,3,4\n'.encode()))
    assert list(table.frame.columns) == ["column 1", "b", "c d", "😀"]
    assert len(table.notes) == 2


def test_quoted_cells_keep_delimiters_newlines_and_quotes():
    frame = rows(b'a,b\n"1,5\nx","say ""hi"""\n')
    assert frame["a"].tolist() == ["1,5\nx"]
    assert frame["b"].tolist() == ['say "hi"']


def test_ten_thousand_columns():
    header = ",".join(f"c{i}" for i in range(10_000))
    data = (header + "\n" + ",".join("1" * 10_000) + "\n").encode()
    assert rows(data).shape == (1, 10_000)


def test_parquet_types_become_numbers_booleans_and_text():
    table = pa.table(
        {
            "int": pa.array([1, None, 3], pa.int64()),
            "float": pa.array([1.5, None, 2.0], pa.float32()),
            "decimal": pa.array([1, None, 3]).cast(pa.decimal128(22, 2)),
            "bool": [True, None, False],
            "text": ["x", None, "y"],
            "bytes": pa.array([b"x", None, b"y"], pa.binary()),
            "dict": pa.array(["x", None, "y"]).dictionary_encode(),
            "day": pa.array([0, None, 1], pa.int32()).cast(pa.date32()),
            "time": pa.array([0, None, 1], pa.timestamp("ns", "UTC")),
            "nothing": pa.nulls(3),
        }
    )
    frame = rows(parquet(table))
    assert frame.isna().iloc[1].all()
    assert frame["float"].tolist()[::2] == [1.5, 2.0]
    assert frame["dict"].tolist()[::2] == ["x", "y"]
    assert frame["day"].iloc[0] == "1970-01-01"
    assert frame["time"].iloc[0].startswith("1970-01-01")


def test_the_index_that_pandas_stores_is_no_column(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]}, index=[5, 3])
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert list(table.frame.columns) == ["a"]
    assert table.notes == ("the index that pandas stored is left out",)


@pytest.mark.parametrize("chunk_rows", [1, 2, 7, 1000])
@pytest.mark.parametrize("kind", ["csv", "gzip", "parquet"])
def test_chunks_are_the_table(chunk_rows, kind):
    data = b"a,b\n" + b"".join(b"%d,x%d\n" % (i, i % 3) for i in range(50))
    if kind == "gzip":
        data = gzip.compress(data, mtime=0)
    if kind == "parquet":
        table = pa.table({"a": range(50), "b": ["x"] * 50})
        data = parquet(table, row_group_size=8)
    whole = rows(data)
    with TableReader(io.BytesIO(data), chunk_rows=chunk_rows) as reader:
        assert reader.columns == ("a", "b")
        assert reader.n_bytes is None
        parts = list(reader)
    assert max(map(len, parts)) <= chunk_rows
    pd.testing.assert_frame_equal(pd.concat(parts), whole)


@pytest.mark.parametrize(("max_rows", "sizes"), [(20, [16, 16, 18]), (100, [50])])
def test_row_groups_are_put_together_up_to_a_size(max_rows, sizes, tmp_path):
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"a": range(50), "b": ["x"] * 50}), path, row_group_size=8)
    with TableReader(path) as reader:
        pieces = reader.groups(max_rows)
    parts = []
    for groups in pieces:
        with TableReader(path, groups=groups, chunk_rows=max_rows) as reader:
            parts += reader
    assert [len(part) for part in parts] == sizes
    whole = read_table(path).frame
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)
    with TableReader(io.BytesIO(b"a\n1\n")) as reader:
        assert reader.groups(max_rows) is None


def test_wanted_columns_alone_are_read_in_the_order_wanted():
    nested = pa.table({"a": [1], "b": [[1, 2]], "c": ["x"]})
    for data in (b"a,b,c\n1,2,x\n", parquet(nested)):
        with TableReader(io.BytesIO(data), columns=["c", "a"]) as reader:
            (chunk,) = reader
        assert list(chunk.columns) == ["c", "a"]
        with TableReader(io.BytesIO(data)) as reader:
            reader.select(["c", *(name for name in reader.columns if name != "b")])
            (chunk,) = reader
        assert list(chunk.columns) == ["c", "a"]


LONG = pa.table({"a": list(range(999))})
BIG_CELL = b"a,b\n" + b"x" * 10_000_000 + b",1\n"
BAD = {
    "empty": (b"", "header and rows"),
    "blank": (b"\n\n  \n", "header and rows"),
    "mark alone": (b"\xef\xbb\xbf", "header and rows"),
    "header only": (b"a,b\n", "no rows"),
    "header and blanks": (b"a,b\n\n\n", "no rows"),
    "long row": (b"a,b\n1,2\n3,4,5\n", "data row 2"),
    "short row": (b"a,b\n1,2\n3\n", "data row 2"),
    "delimiter at the end": (b"a,b\n1,2,\n", "3 cells"),
    "open quote": (b'a,b\n"1,2\n3,4\n5,6\n', "quote left open"),
    "duplicate": (b"a,b,a\n1,2,3\n", "Columns 1 and 3"),
    "no names": (b"1,2,3\n4,5,6\n", "names"),
    "junk": (bytes(range(256)) * 9, "binary"),
    "nul": (b"a,b\n1,\x00\n", "binary"),
    "utf-16 unmarked": ("a,b\n1,2\n".encode("utf-16-le"), "binary"),
    "broken utf-16": (b"\xff\xfea", "byte order mark"),
    "pickle": (b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x8c", "binary"),
    "zip": (b"PK\x03\x04rest", "Excel"),
    "old excel": (b"\xd0\xcf\x11\xe0\xa1\xb1", "Excel"),
    "bzip2": (b"BZh91AY", "bzip2"),
    "zstd": (b"\x28\xb5\x2f\xfd", "zstd"),
    "pdf": (b"%PDF-1.7", "PDF"),
    "sqlite": (b"SQLite format 3\x00", "SQLite"),
    "cut gzip": (gzip.compress(PLAIN * 1000, mtime=0)[:-9], "truncated"),
    "gzip head": (b"\x1f\x8b\x08", "truncated"),
    "altered gzip": (gzip.compress(PLAIN, mtime=0)[:-8] + b"12345678", "damaged"),
    "gzip in gzip": (gzip.compress(gzip.compress(PLAIN, mtime=0)), "gzipped twice"),
    "parquet magic": (b"PAR1", "damaged"),
    "parquet no rows": (parquet(pa.table({"a": pa.array([], pa.int8())})), "empty"),
    "parquet no columns": (parquet(pa.table({})), "empty"),
    "parquet list": (parquet(pa.table({"a": [[1], [2]]})), "'a'.*nested"),
    "parquet struct": (parquet(pa.table({"a": [{"b": 1}]})), "'a'.*nested"),
    "parquet bytes": (parquet(pa.table({"a": [b"\xff\xfe"]})), "'a'"),
    "cut gzipped parquet": (gzip.compress(parquet(LONG))[:-30], "truncated"),
    "cut parquet": (parquet(LONG)[:-20], "damaged"),
    "long line": (b'a,"' + b"x" * 20_000_000, "first line"),
    "endless header": ((99 * b"a" + b",") * 180_000, "several megabytes"),
    "long field": (b"a," + b"x" * 200_000 + b"\n1,2\n", "first line"),
    "huge cell": (BIG_CELL, "quote left open"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_give_one_sentence(name):
    data, says = BAD[name]
    for read in (rows, chunks):
        with pytest.raises(InvalidInputError, match=says):
            read(data)


def test_an_altered_parquet_file_is_no_traceback():
    good = parquet(pa.table({"a": list(range(999)), "b": ["x"] * 999}))
    rng = np.random.default_rng(0)
    for _ in range(60):
        data = bytearray(good)
        for at in rng.integers(4, len(good), size=4):
            data[at] = rng.integers(256)
        try:
            rows(bytes(data))
        except InvalidInputError:
            continue


def test_what_is_no_file(tmp_path):
    for source in (tmp_path / "none.csv", tmp_path, "a\0b", 3, io.StringIO("a,b\n1,2")):
        with pytest.raises(
            InvalidInputError, match=r"Cannot read the table|must be a|has no CSV"
        ):
            read_table(source)


def test_a_file_that_cannot_be_read_to_its_end():
    class Broken(io.BytesIO):
        def read(self, size=-1):
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().read(size)

    with pytest.raises(InvalidInputError, match="Input/output error"):
        read_table(Broken(b"a,b\n" + b"1,2\n" * 200_000))


def test_progress_of_a_csv_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(PLAIN)
    with TableReader(path) as reader:
        list(reader)
        assert reader.bytes_read == reader.n_bytes == len(PLAIN)


def test_wrong_wishes():
    with pytest.raises(InvalidInputError, match="has no column 'A'"):
        TableReader(io.BytesIO(PLAIN), columns=["A"])
    with pytest.raises(InvalidInputError, match="and 4 more"):
        TableReader(io.BytesIO(PLAIN), columns=list("ABCDEFGHIJ"))


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(MissingLibraryError, match=r"probgap\[tool\]"):
        rows(PLAIN)
