"""`lookalike links`: the links that point to each page of a crawl."""

from __future__ import annotations

import argparse
import time

from lookalike.cli import common
from lookalike.cli.terminal import is_standard, say, say_json, warn, warn_left_out
from lookalike.corpora import check_table_target
from lookalike.errors import ArgumentError, Said
from lookalike.incoming import incoming_links
from lookalike.pages import MOST_AROUND
from lookalike.progress import progress_bars
from lookalike.shown import counted, escape_terminal

TASK = "remove duplicates"
PURPOSE = "find the links that point to each page of a crawl"
DESCRIPTION = """\
Invert the links of a crawl: write a row for each page that is linked. It has
the pages that link to it, the words of the links, and those around them.
dedup --features links compares pages by these rows."""
ARGUMENTS = f"""
  input:INPUT...       WARC files, folders of web pages, or tables with the columns source and
                       target (and anchor, before, after, context, nofollow, rel)
  -o --output FILE     file to write: .jsonl, .json, .csv, .tsv or .parquet
  --around N=5         words before and after a link that are kept (maximum: {MOST_AROUND})
  --with-text          begin the text of a row with the main text of the page itself
  --only-crawled       skip pages that are linked, but not in the input
  --json               print the summary as JSON
  --quiet
links:
  --nofollow           count links that are marked nofollow
  --self-links         count links of a page to itself
  --internal relative|absolute|skip=relative  sources within a host: relative is without the
                       host, so that mirrors agree
  --min-links N=1      skip pages with fewer links
  --max-links N=1000   maximum number of links in a text, sampled by their sources
  --host-folders       the first folder of a path is a host, as wget -r writes pages
input:
{common.FORMAT}
  --html COLUMN        column with web pages
  --url COLUMN         column with the addresses of pages (default: detected)
advanced options:
  --encoding NAME      encoding of text files, such as cp1252 or utf-16 (default: detected)
  --skip-bad           skip and count rows that cannot be read (default: stop with an error)
  --page-limits LIMITS  largest web page to parse
  --memory-limit SIZE  maximum memory of the job, such as 2GB
  --threads
"""
EXAMPLES = """\
  lookalike links crawl.warc.gz -o incoming.jsonl
  lookalike dedup incoming.jsonl --features links -o distinct.jsonl
  lookalike links mirrors/ --host-folders --with-text --only-crawled -o pages.parquet
"""
DETAILS = """\
A row has these columns:
  id       address of the page, normalized
  crawled  whether the page itself is in the input
  links    number of links to it; equal links of a source count once
  sources  number of pages that link to it
  anchor   most frequent words of these links
  text     sources, words of links and words around them, for --features links, words, or both
"""


def run(options: argparse.Namespace) -> None:
    """Invert the links, and write them."""
    if options.output is None:
        raise ArgumentError(Said("-o"), " is missing; name the file for the rows")
    if is_standard(options.output):
        raise ArgumentError(Said("-o"), " is -; expected a file, such as incoming.jsonl")
    check_table_target(options.output)
    common.check_folder(options.output)
    corpus = common.corpus_of(options.input, options)
    common.check_not_read("-o", options.output, corpus.files)
    start = time.perf_counter()
    with progress_bars(options.quiet or options.json, common.megabytes(corpus)) as progress:
        found = incoming_links(
            corpus,
            options.output,
            around=options.around,
            nofollow=options.nofollow,
            self_links=options.self_links,
            internal=options.internal,
            with_text=options.with_text,
            only_crawled=options.only_crawled,
            min_links=options.min_links,
            max_links=options.max_links,
            host_folders=options.host_folders,
            url=options.url,
            skip_bad=options.skip_bad,
            memory_limit=options.memory_limit,
            threads=options.threads,
            progress=progress,
        )
    seconds = time.perf_counter() - start
    if options.json:
        shown = {name: getattr(found, name) for name in ("file", "rows", "links", "sampled")}
        say_json({**shown, "left_out": found.left_out, "seconds": round(seconds, 3)})
    elif not options.quiet:
        links = f"{counted(found.links, 'link')} to {counted(found.rows, 'page')}"
        say(f"{links}, in {seconds:.2f} s: {escape_terminal(found.file)}")
        if found.sampled:
            say(f"  {counted(found.sampled, 'page')} with more than {options.max_links:,} links")
    for notice in found.notices:
        warn(notice, kind="")
    left_out = found.bad_rows + found.binary_files + sum(found.left_out.values())
    warn_left_out(left_out, found.examples)
