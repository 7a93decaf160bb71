"""A problem as one paragraph."""

from engine_host.protocol.errors import Fix, Problem, Reason


def test_words_of_another_program_do_not_run_into_the_next_sentence() -> None:
    fix = Fix(text="See that it can be reached.")
    problem = Problem(
        reason=Reason.DOWNLOAD_FAILED, message="It failed.", cause="lookup: no such host", fix=fix
    )
    assert problem.sentence() == "It failed. lookup: no such host. See that it can be reached."
