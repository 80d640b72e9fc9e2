"""Find passages that documents copied from each other, and the source of a quotation.

Run it with `python examples/copied_passages.py`.
"""

import random

import lookalike as la

WORDS = "stone light water winter road paper house music summer letter island market".split()


def sentence(chance: random.Random, words: int) -> str:
    """Return random words."""
    return " ".join(f"{chance.choice(WORDS)}{chance.randrange(200)}" for _ in range(words))


def main() -> None:
    """Copy a passage from one document into another with an edit, and find it."""
    chance = random.Random(0)
    documents = [{"id": f"essay-{n}", "text": sentence(chance, 400)} for n in range(20)]
    passage = documents[3]["text"].split()[100:180]
    passage[40] = "edited"
    documents[11]["text"] += " " + " ".join(passage)

    for overlap in la.overlaps(documents, min_words=30):
        print(f"{overlap.left} and {overlap.right} share {overlap.words} words")

    quotation = " ".join(passage[10:30])
    for found in la.passages(documents, quotation):
        begin, end = found.document_characters
        print(f"{found.id} has {found.words} of 20 quoted words, characters {begin} to {end}")


if __name__ == "__main__":
    main()
