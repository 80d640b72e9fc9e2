from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.services.guarded import Served, guarded_service


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with keys and narrow limits."""
    with guarded_service(tmp_path_factory.mktemp("guarded")) as served:
        yield served
