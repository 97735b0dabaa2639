import pytest

# Or what fails in one of these would not say what it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in ("asked", "browser", "tree")))
