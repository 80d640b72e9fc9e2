"""MIDI files: read, varied (key, tempo, instruments, drums, voices) and played by fluidsynth."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.recordings.sounds import Samples

__all__ = ["Event", "Score", "Variant", "composed", "played", "sound_fonts", "varied"]

RATE = 16_000
_DRUMS = 9  # channel
_TEMPO, _SECONDS = 0x51, 20
_PROGRAMS = (0, 4, 6, 11, 16, 19, 21, 24, 26, 40, 42, 48, 52, 56, 61, 65, 68, 71, 73, 75, 80, 88)
_FONTS = ("FluidR3_GM.sf2", "TimGM6mb.sf2")


@dataclass(frozen=True)
class Event:
    """A message of a channel, or the tempo (`status` 255) in microseconds a beat."""

    tick: int
    status: int
    data: bytes

    @property
    def kind(self) -> int:
        """8: note off, 9: note on, 12: program, 14: bend."""
        return self.status >> 4

    @property
    def channel(self) -> int:
        """From 0; drums have 9."""
        return self.status & 15


@dataclass(frozen=True)
class Score:
    """The events of a piece, by time."""

    beat: int  # ticks
    events: Sequence[Event]


@dataclass(frozen=True)
class Variant:
    """What is changed."""

    semitones: int = 0
    tempo: float = 1.0
    other_instruments: bool = False
    drums: bool = True
    fewer_voices: bool = False


def sound_fonts() -> list[Path]:
    """Return the sound fonts of fluid-soundfont-gm and timgm6mb-soundfont, if all is installed."""
    folder = Path("/usr/share/sounds/sf2")
    fonts = [folder / name for name in _FONTS]
    found = shutil.which("fluidsynth") is not None and all(font.exists() for font in fonts)
    return fonts if found else []


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    while True:
        value, at = value << 7 | data[at] & 127, at + 1
        if data[at - 1] < 128:
            return value, at


def read(path: Path) -> Score:
    """Return the events of a file; only what a variant needs is kept."""
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    data = data[data.index(b"MThd") :]
    beat = int.from_bytes(data[12:14], "big")
    at = 8 + int.from_bytes(data[4:8], "big")
    events: list[Event] = []
    while data[at : at + 4] == b"MTrk":
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8], "big")
        at, tick, status = at + 8, 0, 0
        while at < min(end, len(data)):
            apart, at = _number(data, at)
            tick += apart
            if data[at] in (0xF0, 0xF7, 0xFF):
                meta = data[at] == 0xFF
                kind = data[at + 1]
                length, at = _number(data, at + 1 + meta)
                if meta and kind == _TEMPO:
                    events.append(Event(tick, 255, data[at : at + 3]))
            else:
                if data[at] >= 128:
                    status, at = data[at], at + 1
                length = 1 if status >> 4 in (12, 13) else 2
                events.append(Event(tick, status, data[at : at + length]))
            at += length
        at = end
    return Score(beat, sorted(events, key=lambda one: one.tick))


def _within(score: Score, seconds: float) -> list[Event]:
    """Return the events of the first seconds."""
    tempo, last, time, kept = 500_000, 0, 0.0, []
    for event in score.events:
        time += (event.tick - last) * tempo / 1e6 / score.beat
        last = event.tick
        if time > seconds:
            break
        kept.append(event)
        if event.status == 255:
            tempo = int.from_bytes(event.data, "big")
    return kept


def varied(score: Score, variant: Variant, seed: int, seconds: float) -> Score:
    """Return the first seconds of a piece as a variant."""
    random = np.random.default_rng([seed, 5])
    events = _within(score, seconds)
    notes = [one for one in events if one.kind == 9 and one.data[1] and one.channel != _DRUMS]
    busy = [channel for channel, _ in Counter(one.channel for one in notes).most_common()]
    left_out = {int(random.choice(busy[1:]))} if variant.fewer_voices and len(busy) > 2 else set()
    made: list[Event] = []
    if not any(one.status == 255 for one in events):
        events.insert(0, Event(0, 255, (500_000).to_bytes(3, "big")))
    if variant.other_instruments:
        for channel in sorted(busy):
            program = int(random.choice(_PROGRAMS))
            made.append(Event(0, 0xC0 | channel, bytes([program])))
    for one in events:
        if one.status == 255:
            slower = round(int.from_bytes(one.data, "big") / variant.tempo)
            made.append(replace(one, data=min(slower, 0xFFFFFF).to_bytes(3, "big")))
            continue
        if one.channel in left_out or (one.channel == _DRUMS and not variant.drums):
            continue
        if variant.other_instruments and one.channel != _DRUMS and one.kind in (12, 14):
            continue
        if one.kind in (8, 9) and one.channel != _DRUMS:
            moved = one.data[0] + variant.semitones
            if 0 <= moved < 128:
                made.append(replace(one, data=bytes([moved, one.data[1]])))
            continue
        made.append(one)
    end = max((one.tick for one in made), default=0) + score.beat
    for channel in range(16):  # pedals up, all sound off: else the last note never ends
        made += [Event(end, 0xB0 | channel, bytes([control, 0])) for control in (64, 123, 120)]
    return Score(score.beat, made)


def _bytes_of(score: Score) -> bytes:
    track, last = bytearray(), 0
    for one in score.events:
        apart, last = one.tick - last, one.tick
        digits = [apart & 127]
        while apart := apart >> 7:
            digits.append(apart & 127 | 128)
        head = bytes([255, _TEMPO, 3]) if one.status == 255 else bytes([one.status])
        track += bytes(digits[::-1]) + head + one.data
    track += b"\x00\xff\x2f\x00"
    header = b"MThd\x00\x00\x00\x06\x00\x00\x00\x01" + score.beat.to_bytes(2, "big")
    return header + b"MTrk" + len(track).to_bytes(4, "big") + bytes(track)


def played(score: Score, font: Path, seconds: float) -> Samples:
    """Return at most so many seconds of a piece as fluidsynth plays it, in one channel."""
    import soundfile

    with TemporaryDirectory() as folder:
        midi, wave = Path(folder, "piece.mid"), Path(folder, "piece.wav")
        midi.write_bytes(_bytes_of(score))
        dry = ["-ni", "-q", "-R", "0", "-C", "0", "-g", "0.6", "-r", str(RATE)]
        command = ["fluidsynth", *dry, "-F", str(wave), str(font), str(midi)]
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
        sound = soundfile.read(wave, dtype="float32", frames=round(seconds * RATE))[0]
    return np.asarray(sound.mean(axis=1), np.float32)


def composed(seed: int) -> Score:
    """Return a made-up piece of 96 bars: chords, a bass, a melody and drums in a song form."""
    random = np.random.default_rng([seed, 21])
    scale = np.array([(0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10)][int(random.integers(2))])
    key, beat = int(random.integers(48, 60)), 96

    def pitch(degree: int) -> int:
        return key + 12 * (degree // 7) + int(scale[degree % 7])

    sections = []
    for _ in range(4):
        roots = random.integers(0, 7, 8)
        melody = np.clip(np.cumsum(random.integers(-2, 3, 64)) + 9, 5, 16)
        sections.append((roots, melody, random.random(64) < 0.7))
    notes: list[tuple[int, int, int, int]] = []  # tick, channel, pitch, length
    for number, section in enumerate(random.choice(4, 12).tolist()):
        roots, melody, sung = sections[section]
        for place in range(64):
            tick = (number * 64 + place) * beat // 2
            root = int(roots[place // 8])
            if place % 8 == 0:
                notes += [(tick, 0, pitch(root + third), 4 * beat) for third in (0, 2, 4)]
            if place % 4 == 0:
                notes.append((tick, 1, pitch(root) - 12, 2 * beat))
            if sung[place]:
                notes.append((tick, 2, pitch(int(melody[place])), beat // 2))
            if place % 2 == 0:
                notes.append((tick, _DRUMS, 36 if place % 4 == 0 else 38, beat // 2))
    microseconds = round(6e7 / random.uniform(80, 150))
    events = [Event(0, 255, microseconds.to_bytes(3, "big"))]
    programs = random.choice(_PROGRAMS, 3).tolist()
    events += [Event(0, 0xC0 | channel, bytes([one])) for channel, one in enumerate(programs)]
    for tick, channel, note, length in notes:
        events.append(Event(tick, 0x90 | channel, bytes([note, 90])))
        events.append(Event(tick + length, 0x80 | channel, bytes([note, 0])))
    return Score(beat, sorted(events, key=lambda one: (one.tick, one.kind == 9)))
