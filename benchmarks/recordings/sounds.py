"""Sounds with a random structure: pieces of music, speech, noise; and what happens to recordings.

A piece has a key, a tempo and a song form of its own: chords, a melody, a bass and drums, whose
instruments are sums of partials. All of it follows from the seed.
"""

from __future__ import annotations

import io
import shutil
import subprocess

import numpy as np
from numpy.typing import NDArray

__all__ = ["encoded", "music", "speech", "with_noise"]

Samples = NDArray[np.float32]

_SCALES = ((0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10), (0, 2, 3, 5, 7, 9, 10), (0, 2, 4, 7, 9))
_STEPS_A_BAR = 8
_HIGHEST = 0.45
"""Of the sampling rate: partials above are left out."""


def music(seed: int, seconds: float, rate: int = 8000) -> Samples:
    """Return a piece of so many seconds, in one channel, from -1 to 1."""
    random = np.random.default_rng([seed, 1])
    length = round(seconds * rate)
    sound = np.zeros(length + 4 * rate, np.float32)
    beat = 60 / random.uniform(66, 168) / 2
    key = random.uniform(44, 56)
    scale = _SCALES[random.integers(len(_SCALES))]
    instruments = [_instrument(random) for _ in range(3)]
    drums = random.uniform(0, 0.5)
    sections = [_section(random, len(scale)) for _ in range(random.integers(3, 6))]
    time = 0.0
    while time < seconds:
        section = sections[random.integers(len(sections))]
        for bar in section:
            for step in range(_STEPS_A_BAR):
                start = time + step * beat * (1 + random.normal(0, 0.01))
                _play_step(sound, rate, start, bar, step, beat, key, scale, instruments, random)
                if random.random() < drums:
                    _drum(sound, rate, start, random)
            time += _STEPS_A_BAR * beat
            if time >= seconds:
                break
    sound = sound[:length]
    return (sound * (0.7 / max(1e-9, float(np.abs(sound).max())))).astype(np.float32)


def _instrument(random: np.random.Generator) -> tuple[NDArray[np.float64], float, float]:
    """Return the loudness of partials, and how quickly a note comes and goes."""
    partials = random.uniform(0.2, 1, 6) / np.arange(1, 7) ** random.uniform(0.5, 2)
    return partials, random.uniform(0.005, 0.06), random.uniform(0.15, 1.2)


def _section(random: np.random.Generator, notes: int) -> list[tuple[int, NDArray[np.int64]]]:
    """Return bars: the root of a chord, and the degree of the melody at each step, -1 for none."""
    bars = []
    for _ in range(4):
        melody = np.cumsum(random.integers(-2, 3, _STEPS_A_BAR)) + random.integers(4, 12)
        melody[random.random(_STEPS_A_BAR) < 0.3] = -1
        bars.append((int(random.integers(notes)), melody))
    return bars


def _play_step(
    sound: Samples,
    rate: int,
    start: float,
    bar: tuple[int, NDArray[np.int64]],
    step: int,
    beat: float,
    key: float,
    scale: tuple[int, ...],
    instruments: list[tuple[NDArray[np.float64], float, float]],
    random: np.random.Generator,
) -> None:
    root, melody = bar
    if step == 0:
        for third in (0, 2, 4):
            _note(
                sound, rate, start, 4 * beat, _pitch(key, scale, root + third), 0.3, instruments[0]
            )
    if step % 4 == 0:
        _note(sound, rate, start, 3 * beat, _pitch(key - 12, scale, root), 0.5, instruments[1])
    if melody[step] >= 0:
        # Nobody plays a phrase twice in quite the same way.
        degree = int(melody[step])
        if random.random() < 0.2:
            degree += int(random.integers(-1, 2))
        loud = 0.5 * random.uniform(0.7, 1)
        held = beat * random.choice((1, 1, 2, 3))
        _note(sound, rate, start, held, _pitch(key, scale, degree), loud, instruments[2])


def _pitch(key: float, scale: tuple[int, ...], degree: int) -> float:
    octave, place = divmod(degree, len(scale))
    return float(440 * 2 ** ((key + 12 * octave + scale[place] - 69) / 12))


def _note(
    sound: Samples,
    rate: int,
    start: float,
    seconds: float,
    pitch: float,
    loud: float,
    instrument: tuple[NDArray[np.float64], float, float],
) -> None:
    partials, rise, fall = instrument
    first = max(0, round(start * rate))
    count = min(round((seconds + 0.2) * rate), len(sound) - first)
    if count <= 0:
        return
    time = np.arange(count, dtype=np.float32) / rate
    envelope = np.minimum(1, time / rise) * np.exp(-time / fall)
    envelope *= np.clip((seconds + 0.2 - time) / 0.1, 0, 1)
    wave = np.zeros(count, np.float32)
    for number, amplitude in enumerate(partials, 1):
        if pitch * number < _HIGHEST * rate:
            wave += np.float32(amplitude) * np.sin(np.float32(2 * np.pi * pitch * number) * time)
    sound[first : first + count] += np.float32(loud) * envelope * wave


def _drum(sound: Samples, rate: int, start: float, random: np.random.Generator) -> None:
    first = max(0, round(start * rate))
    count = min(rate // 5, len(sound) - first)
    if count <= 0:
        return
    time = np.arange(count, dtype=np.float32) / rate
    noise = random.standard_normal(count).astype(np.float32)
    sound[first : first + count] += 0.25 * noise * np.exp(-time / np.float32(0.03))


def speech(words: str, rate: int = 16000) -> Samples | None:
    """Return what espeak-ng makes of words, or None where it is not there."""
    program = shutil.which("espeak-ng")
    if program is None:
        return None
    import soundfile

    done = subprocess.run([program, "--stdout", words], capture_output=True, check=True)
    sound, spoken = soundfile.read(io.BytesIO(done.stdout), dtype="float32")
    return resampled(sound, spoken, rate)


def resampled(sound: Samples, rate: int, wanted: int) -> Samples:
    """Return a sound at another rate: of its spectrum, that which both have."""
    count = round(len(sound) * wanted / rate)
    spectrum = np.fft.rfft(sound.astype(np.float64))
    both = min(len(spectrum), count // 2 + 1)
    kept = np.zeros(count // 2 + 1, complex)
    kept[:both] = spectrum[:both]
    return (np.fft.irfft(kept, count) * (count / len(sound))).astype(np.float32)


def encoded(sound: Samples, rate: int, format: str, level: float | None = None) -> Samples:
    """Return what is left of a sound in a format of soundfile's, such as MP3 or OGG."""
    import soundfile

    file = io.BytesIO()
    more = {} if level is None else {"compression_level": level}
    soundfile.write(file, sound, rate, format=format, **more)
    file.seek(0)
    return np.asarray(soundfile.read(file, dtype="float32")[0], np.float32)


def with_noise(sound: Samples, decibels: float, seed: int) -> Samples:
    """Return a sound with white noise that is so many decibels below it."""
    noise = np.random.default_rng(seed).standard_normal(len(sound)).astype(np.float32)
    power = float(np.mean(np.square(sound, dtype=np.float64)))
    return sound + np.float32(np.sqrt(power / 10 ** (decibels / 10))) * noise
