"""Search documents that come and go.

Run it with `python examples/search_collection.py`. The collection is an SQLite file in a temporary
folder; `lookalike serve docs.db` shows such a file in a browser.
"""

import tempfile
from pathlib import Path

import lookalike as la

NEWS = {
    "wage": "Parliament debated the minimum wage on Tuesday and voted for a rise of four percent.",
    "storm": "A storm closed the harbor for two days; ferries to the islands run again.",
    "bridge": "The old bridge over the river is closed until spring because a pillar is cracked.",
}


def main() -> None:
    """Add, search, replace and delete documents."""
    with (
        tempfile.TemporaryDirectory() as folder,
        la.open_collection(Path(folder, "docs.db"), signer=la.SimHash(bits=256)) as docs,
    ):
        docs.add(
            list(NEWS),
            list(NEWS.values()),
            metadata=[{"section": section} for section in ("politics", "weather", "local")],
        )

        repost = NEWS["storm"].replace("two days", "three days")
        print("nearest to the repost:", docs.search(repost, k=1).ids)
        print("within 60 bits of it:", docs.within(repost, radius=60).ids)
        print("only politics:", docs.search(repost, k=1, where={"section": "politics"}).ids)

        docs.upsert(["storm"], ["The harbor is open. All ferries leave on time."])
        docs.delete(["bridge"])
        print("after an update and a deletion:", docs.within(repost, radius=60).ids)


if __name__ == "__main__":
    main()
