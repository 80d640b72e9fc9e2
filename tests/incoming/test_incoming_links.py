"""Links of a crawl, inverted: what an oracle in a dictionary finds, from all kinds of input."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from lookalike.errors import ArgumentError, DocumentError, FileError
from lookalike.incoming import job
from lookalike.incoming.records import Counts, IncomingSettings, rows_of
from lookalike.incoming.sorting import SortedRecords
from lookalike.pages.addresses import LONGEST_ADDRESS, host_of, normalized_address, within_host
from lookalike.pages.marks import split_marks
from support.cases.web_pages import crawl as write_crawl
from support.cases.web_pages import response
from support.oracles.links import Link, features, incoming

words = st.lists(st.sampled_from("fox owl the law river bank mouse ölweg 42".split()), max_size=6)
texts = words.map(" ".join)
addresses = st.builds(
    lambda host, path: f"http://{host}.example/{path}",
    st.sampled_from(["a", "b", "mirror"]), st.sampled_from(["", "x", "y/z", "x?q=1"]),
)  # fmt: skip
links = st.lists(
    st.builds(Link, addresses, addresses, texts, texts, texts, st.booleans()), max_size=40
)
chosen = st.fixed_dictionaries({
    "around": st.sampled_from([0, 1, 5, 50]), "nofollow": st.booleans(),
    "self_links": st.booleans(), "internal": st.sampled_from(["relative", "absolute", "skip"]),
})  # fmt: skip


def rows_in(path: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, path.read_text("utf-8").splitlines())}


def counted(text: str, around: int = 1000) -> Counter[str]:
    """Return the features of a row, as `la.Links` finds them."""
    return Counter(la.Links(around=around)._features(text))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(links, chosen)
def test_a_table_is_inverted_as_by_the_oracle(
    tmp_path: Path, given_links: list[Link], options: dict[str, Any]
) -> None:
    table, output = tmp_path / "table.jsonl", tmp_path / "incoming.jsonl"
    table.write_text("".join(json.dumps(link._asdict()) + "\n" for link in given_links) or "\n")
    rows = [link._asdict() for link in given_links]
    if not rows:
        return
    found = la.incoming_links(rows, output, **options)
    expected = incoming(given_links, **options)
    written = rows_in(output)
    assert list(written) == sorted(expected), "sorted by address"
    for target, those in expected.items():
        row = written[target]
        assert row["links"] == len(those) and row["crawled"] is False
        assert row["sources"] == len({source for source, *_ in those})
        assert counted(row["text"]) == features(those)
        usual = Counter(anchor for _, anchor, *_ in those if anchor)
        assert usual[row["anchor"]] == max(usual.values(), default=0)
    assert found.rows == len(written) and found.links == sum(map(len, expected.values()))


@settings(max_examples=60, deadline=None)
@given(links, st.integers(500, 4000), st.integers(2, 4))
def test_more_than_fits_into_memory(
    tmp_path_factory: pytest.TempPathFactory, given_links: list[Link], memory: int, runs: int
) -> None:
    """Sorted by runs in files, and with runs merged meanwhile, rows are the same."""
    chosen = IncomingSettings(self_links=True)
    records = [
        (one.target, 1, hash(one.source) & 0xFFFF, one.source, one.anchor, one.before, one.after)
        for one in given_links
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lookalike.incoming.sorting._MOST_RUNS", runs)
        sorter = SortedRecords(tmp_path_factory.mktemp("runs"), memory)
        for record in records:
            sorter.add(record)
        assert sorter.runs <= runs
        assert list(sorter) == sorted(records)
        again = list(rows_of(sorter, chosen, Counts()))
    assert again == list(rows_of(sorted(records), chosen, Counts()))


def page(*links: str, base: str = "", meta: str = "", text: str = "") -> str:
    return (
        f"<html><head><title>t</title>{base}{meta}</head><body><p>on this page you find:</p><div>"
        + " ".join(links)
        + f"</div><p>and this is all there is.</p><p>{text}</p></body></html>"
    )


def crawl(tmp_path: Path, pages: dict[str, str]) -> Path:
    """Write pages as a WARC."""
    records = [response(url, body.encode()) for url, body in pages.items()]
    return write_crawl(tmp_path / "crawl.warc.gz", records)


def test_a_crawl(tmp_path: Path) -> None:
    """Relative links, a base, escapes, nofollow of a link and of a page, and self-links."""
    pages = {
        "http://a.example/dir/one.html": page(
            'see <a href="two.html">the second one</a> now', '<a href="#top">up</a>',
            '<a href="HTTP://B.Example:80/x/../y#f">far away</a>',
            '<a rel="nofollow ugc" href="http://spam.example/">spam</a>',
            '<a href="one.html">itself</a>', '<a href="mailto:me@a.example">mail</a>',
        ),
        "http://a.example/dir/two.html": page(
            'back to <a href="one.html">the first one</a>', base='<base href="/other/">',
        ),
        "http://c.example/": page(
            '<a href="http://b.example/y">far away</a>', meta='<meta name="ROBOTS" content="none">',
        ),
    }  # fmt: skip
    output = tmp_path / "incoming.jsonl"
    found = la.incoming_links(crawl(tmp_path, pages), output)
    rows = rows_in(output)
    assert set(rows) == {
        "http://a.example/dir/two.html", "http://a.example/other/one.html", "http://b.example/y"
    }  # fmt: skip
    assert found.links == 3
    second = rows["http://a.example/dir/two.html"]
    assert second["anchor"] == "the second one" and second["crawled"]
    assert not rows["http://b.example/y"]["crawled"]
    before, source, anchor, after = split_marks(second["text"])
    assert (source, anchor) == ("/dir/one.html", "the second one"), "within a host: its path"
    assert before.split()[-1] == "see" and after.split()[0] == "now"
    _, source, anchor, _ = split_marks(rows["http://b.example/y"]["text"])
    assert (source, anchor) == ("http://a.example/dir/one.html", "far away")

    everything = la.incoming_links(
        crawl(tmp_path, pages), output, nofollow=True, self_links=True, internal="absolute"
    )
    rows = rows_in(output)
    assert everything.links == 6
    assert {"http://spam.example/", "http://a.example/dir/one.html"} <= set(rows)
    assert rows["http://b.example/y"]["sources"] == 2
    crawled = la.incoming_links(crawl(tmp_path, pages), output, only_crawled=True, min_links=0)
    assert crawled.rows == 3 and set(rows_in(output)) == set(pages)


def test_mirrors_of_a_site_are_found_by_their_links(tmp_path: Path) -> None:
    """Two hosts with other words on their pages, and the same links between them: as wget -r."""
    folder = tmp_path / "crawl"
    for host in ("one.example", "two.example", "other.example"):
        (folder / host).mkdir(parents=True)
        site = host if "other" in host else "the site"
        for number in range(8):
            anchors = [
                f'read about <a href="page{other}.html">topic {other} of {site}</a>'
                for other in range(8)
                if (other * (3 if "other" in host else 1) + number) % 3
            ]
            own = " ".join(f"{host.partition('.')[0]}{number}{word}" for word in range(30))
            (folder / host / f"page{number}.html").write_text(page(*anchors, text=own))
    output = tmp_path / "incoming.jsonl"
    found = la.incoming_links(folder, output, host_folders=True, only_crawled=True)
    assert found.rows == 24
    result = la.dedup(output, features=la.Links(), threshold=0.8)
    ids = [row["id"] for row in rows_in(output).values()]
    pairs = {
        tuple(sorted((ids[left], ids[right])))
        for left, right in zip(result.pairs.left.tolist(), result.pairs.right.tolist(), strict=True)
    }
    mirrored = {
        tuple(f"http://{host}.example/page{number}.html" for host in ("one", "two"))
        for number in range(8)
    }
    assert mirrored <= pairs
    assert not any("other.example" in page for pair in pairs for page in pair)
    # Alone, the texts of mirrors have nothing in common; folded into them, the links do.
    assert la.dedup(folder).counts.near_duplicates == 0
    both = tmp_path / "both.jsonl"
    la.incoming_links(folder, both, host_folders=True, only_crawled=True, with_text=True)
    text = rows_in(both)["http://one.example/page1.html"]["text"]
    assert "one1w0" not in text and "one10" in text
    combined = la.Combined(la.Words(1), la.Links(), weights=[1, 3])
    similar = la.weighted_jaccard if False else la.jaccard
    one, two = (
        rows_in(both)[f"http://{host}.example/page1.html"]["text"] for host in ("one", "two")
    )
    assert 0 < similar(one, two, combined) < similar(one, two, la.Links())


def test_pages_in_a_folder_and_in_a_column(tmp_path: Path) -> None:
    folder = tmp_path / "pages" / "sub"
    folder.mkdir(parents=True)
    bodies = {"a.html": page('<a href="b.html">to b</a>', '<a href="../c.html">to c</a>'),
              "b.html": page('<a href="a.html">to a</a>')}  # fmt: skip
    for name, body in bodies.items():
        (folder / name).write_text(body)
    output = tmp_path / "incoming.parquet"
    la.incoming_links(tmp_path / "pages", output)
    assert pq.read_table(output)["id"].to_pylist() == ["c.html", "sub/a.html", "sub/b.html"]
    table = [{"url": f"http://h.example/sub/{name}", "html": body} for name, body in bodies.items()]
    la.incoming_links(table, output, html="html")
    host = "http://h.example/"
    expected = [f"{host}c.html", f"{host}sub/a.html", f"{host}sub/b.html"]
    assert pq.read_table(output)["id"].to_pylist() == expected


def test_a_page_with_many_links_is_sampled_by_its_sources(tmp_path: Path) -> None:
    """Two targets of the same 500 sources keep the same 50; links and sources count all."""
    table = [
        {
            "source": f"http://s{number}.example/",
            "target": f"http://{host}.example/",
            "anchor": host,
        }
        for number in range(500)
        for host in ("a", "b")
    ]
    output = tmp_path / "incoming.jsonl"
    found = la.incoming_links(table[::-1], output, max_links=50)
    rows = rows_in(output)
    assert found.sampled == 2 and found.links == 1000
    urls = [
        {one for one in counted(row["text"]) if one.startswith("url ")} for row in rows.values()
    ]
    assert urls[0] == urls[1] and len(urls[0]) == 50
    assert all(row["links"] == row["sources"] == 500 for row in rows.values())


def test_contexts_of_a_table(tmp_path: Path) -> None:
    table = [
        {"source": "http://a.org", "target": "http://b.org", "anchor": "the fox",
         "context": "look at the fox jump", "rel": "external"},
        {"source": "http://c.org", "target": "http://b.org", "anchor": None,
         "context": "words alone", "rel": None},
        {"source": "http://d.org", "target": "http://b.org", "anchor": "x", "context": "y",
         "rel": "NOFOLLOW"},
        {"source": "nonsense://d.org", "target": "http://b.org", "anchor": "x", "context": "y",
         "rel": ""},
    ]  # fmt: skip
    la.incoming_links(table, tmp_path / "rows.jsonl")
    (row,) = rows_in(tmp_path / "rows.jsonl").values()
    assert row["id"] == "http://b.org/" and row["links"] == 2
    assert counted(row["text"]) == Counter(
        ["url http://a.org/", "url http://c.org/", "anchor the", "anchor fox", "around look",
         "around at", "around jump", "around words", "around alone"]
    )  # fmt: skip


def test_words_of_other_links_are_not_around_a_link(tmp_path: Path) -> None:
    table = [{"source": f"http://{at}.org/", "target": "http://t.org/", "anchor": f"anchor{at}"}
             for at in range(3)]  # fmt: skip
    la.incoming_links(table, tmp_path / "rows.jsonl")
    (row,) = rows_in(tmp_path / "rows.jsonl").values()
    assert not any(one.startswith("around") for one in counted(row["text"]))


PARTS = st.text("aB%2fé/.?#:@& ;=~\\\t0", max_size=12)


@settings(max_examples=400, deadline=None)
@given(
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["", "http://", "HTTPS://", "//", "ftp://", "file:///", "http:", "x:"]),
        st.sampled_from(["", "h.org", "H.org.", "u:p@h.org:80", "[::1]:443", "ü.org", "h:99999"]),
        st.sampled_from(["", "/", "/a/./b/../c", "/%7e%7E%2f", "a/b"]),
        PARTS,
    )
)
@example("http://h/..//a")
@example("//h//a")
def test_normalizing_twice_changes_nothing(address: str) -> None:
    once = normalized_address(address)
    if once is None:
        return
    assert normalized_address(once) == once
    assert once.isascii() and " " not in once and "#" not in once
    assert "@" not in host_of(once) and host_of(once) == host_of(once).lower()
    assert not any(part in (".", "..") for part in within_host(once).split("?")[0].split("/")[1:])


@pytest.mark.parametrize(("address", "expected"), [
    ("http://EXAMPLE.org", "http://example.org/"),
    ("https://example.org:443/a%2fb", "https://example.org/a%2Fb"),
    ("http://example.org:8080/?", "http://example.org:8080/"),
    ("http://user:secret@example.org/", "http://example.org/"),
    ("http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC"),
    ("http://h/a b?c d", "http://h/a%20b?c%20d"),
    ("http://h/100%", "http://h/100%25"),
    ("javascript:alert(1)", None), ("mailto:a@b.c", None), ("http:///x", None), ("", None),
    ("http://[::1", None), ("http://" + "a" * LONGEST_ADDRESS, None),
])  # fmt: skip
def test_normalized_addresses(address: str, expected: str | None) -> None:
    assert normalized_address(address) == expected


def test_what_cannot_be_inverted(tmp_path: Path) -> None:
    output = tmp_path / "rows.jsonl"
    with pytest.raises(ArgumentError, match="expected web pages .* or the columns source and"):
        la.incoming_links([{"text": "a"}], output)
    table = [{"source": "http://a.org", "target": "http://b.org"}]
    with pytest.raises(ArgumentError, match="with_text needs web pages"):
        la.incoming_links(table, output, with_text=True)
    with pytest.raises(ArgumentError, match="around is 51; expected a whole number from 0 to 50"):
        la.incoming_links(table, output, around=51)
    with pytest.raises(ArgumentError, match="internal is 'none'"):
        la.incoming_links(table, output, internal="none")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="none is the address of a page"):
        la.incoming_links([{"html": "<p>"}], output, html="html")
    with pytest.raises((ArgumentError, FileError)):
        la.incoming_links(table, tmp_path / "rows.xml")
    assert not output.exists()
    damaged = tmp_path / "table.jsonl"
    damaged.write_text('{"source": "http://a.org", "target": "http://b.org"}\n{"source": \n')
    with pytest.raises(DocumentError):
        la.incoming_links(damaged, output)
    assert la.incoming_links(damaged, output, skip_bad=True).bad_rows == 1


def test_hostile_pages_are_left_out(tmp_path: Path) -> None:
    """Pages beyond the limits, with marks of ours, and with more links than are followed."""
    deep = "<div>" * 3000 + '<a href="http://x.org/">x</a>'
    marks = page(
        '<a href="http://m.org/\U0010f200\U0010f204">\U0010f202 m \U0010f204</a> \U0010f201'
    )
    many = page(*(f'<a href="http://n{at}.org/">n</a>' for at in range(12_000)))
    pages = {"http://deep.org/": deep, "http://marks.org/": marks, "http://many.org/": many}
    output = tmp_path / "rows.jsonl"
    found = la.incoming_links(crawl(tmp_path, pages), output)
    assert found.left_out == {"unreadable pages": 1} and "deep" in found.examples[0]
    rows = rows_in(output)
    assert "http://x.org/" not in rows and len(rows) == 10_000 + 1
    (own,) = (row for row in rows.values() if row["id"].startswith("http://m.org/"))
    assert [one for one in counted(own["text"]) if one.startswith("anchor")] == ["anchor m"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = crawl(tmp_path, {"http://a.org/": page('<a href="b">to b</a>', '<a href="c">to c</a>')})
    output = tmp_path / "incoming.jsonl"
    assert main(["links", str(path), "-o", str(output)]) == 0
    assert capsys.readouterr().out.startswith("2 links to 2 pages, in ")
    assert set(rows_in(output)) == {"http://a.org/b", "http://a.org/c"}
    assert main(["links", str(path), "-o", str(output), "--internal", "skip", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == 0 and output.read_text() == ""
    assert main(["links", str(path)]) == 1
    assert "-o is missing" in capsys.readouterr().err
    assert main(["links", str(path), "-o", str(path)]) == 1
    distinct = str(tmp_path / "distinct.jsonl")
    main(["links", str(path), "-o", str(output)])
    assert main(["dedup", str(output), "--features", "links", "-o", distinct, "--quiet"]) == 0


def test_batches_of_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(job, "_ROWS", 3)
    table = [{"source": "http://a.org", "target": f"http://b.org/{at}"} for at in range(10)]
    la.incoming_links(table, tmp_path / "rows.parquet")
    assert len(pq.read_table(tmp_path / "rows.parquet")) == 10
