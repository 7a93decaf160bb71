"""Each row of the table takes its own examples out, and no other row is needed for them."""

import pytest

from engine_host.client.diagnostics.mask import Mask
from engine_host.client.diagnostics.secret_rows import PLANTED, ROWS, SecretRow, without_secrets
from engine_host.core.outside.secret_texts import HIDDEN


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_hides_its_examples_by_itself(row: SecretRow) -> None:
    assert row.examples
    for example in row.examples:
        for text in (example, f"before\n{example}\nafter"):
            assert PLANTED in text
            for shown in (row.without(text), without_secrets(text), Mask().text(text)):
                assert PLANTED not in shown, text
                assert HIDDEN in shown, text


def test_what_stands_beside_a_secret_stays() -> None:
    shown = without_secrets(f"api_key: '{PLANTED}', port: 8020\nfine\n?a=1&token={PLANTED}&b=2")
    assert shown == f"api_key: '{HIDDEN}', port: 8020\nfine\n?a=1&token={HIDDEN}&b=2"


def test_a_value_in_the_line_after_its_name_is_hidden() -> None:
    assert PLANTED not in without_secrets(f"['--api-key',\n '{PLANTED}',\n 'x']")
