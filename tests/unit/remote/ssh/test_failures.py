"""The words of OpenSSH for each kind of end; tests/integration/remote meets most of them in the real one."""

from dataclasses import replace

import pytest

from engine_host.protocol.errors import Reason
from engine_host.remote.ssh.command_lines import Effective
from engine_host.remote.ssh.failures import Ended, is_retried, problem_of
from engine_host.remote.ssh.questions import Attempt, question_of

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
The fingerprint for the ED25519 key sent by the remote host is
SHA256:abc.
Add correct host key in /far/.ssh/known_hosts to get rid of this message.
Offending ED25519 key in /far/.ssh/known_hosts:7
  remove with:
  ssh-keygen -f "/far/.ssh/known_hosts" -R "gpu; id"
Host key for gpu; id has changed and you have requested strict checking.
Host key verification failed.
"""


def reason(stderr: str, *, was_connected: bool = False, code: int | None = 255) -> Reason:
    """The reason of an end with these last words."""
    ended = Ended("gpu", code, "", Attempt("gpu"), log=stderr)
    return problem_of(ended, was_connected=was_connected).reason


@pytest.mark.parametrize(
    ("stderr", "wanted"),
    [
        (CHANGED, Reason.HOST_KEY_CHANGED),
        ("No ED25519 host key is known for gpu and you have requested strict checking.\n"
         "Host key verification failed.", Reason.HOST_KEY_UNKNOWN),
        ("me@gpu: Permission denied (publickey,password).", Reason.SSH_AUTH_FAILED),
        ("Received disconnect from 1.2.3.4: Too many authentication failures", Reason.SSH_AUTH_FAILED),
        ("ssh: Could not resolve hostname gpu: Name or service not known", Reason.SSH_UNREACHABLE),
        ("ssh: connect to host gpu port 22: Connection refused", Reason.SSH_UNREACHABLE),
        ("channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\n"
         "kex_exchange_identification: Connection closed by remote host", Reason.SSH_UNREACHABLE),
        ("channel 0: open failed: administratively prohibited: open failed\nstdio forwarding failed\n"
         "kex_exchange_identification: Connection closed by remote host", Reason.SSH_FORWARD_REFUSED),
        ("jump: Permission denied (publickey).\r\nkex_exchange_identification: Connection closed",
         Reason.SSH_AUTH_FAILED),
        ("/far/.ssh/config: line 3: Bad configuration option: portt", Reason.SSH_FAILED),
        ("Timeout, server gpu not responding.", Reason.SSH_LOST),
        ("something new", Reason.SSH_FAILED),
        ("", Reason.SSH_FAILED),
    ],
)  # fmt: skip
def test_reasons(stderr: str, wanted: Reason) -> None:
    assert reason(stderr) is wanted


def test_a_name_that_nobody_knows_is_told_from_a_machine_that_does_not_answer() -> None:
    words = "ssh: Could not resolve hostname gpu: Name or service not known"
    unknown = problem_of(Ended("me@gpu", 255, words, Attempt("gpu")), was_connected=False)
    assert unknown.message == "me@gpu leads nowhere: no machine of that name is known here."
    assert unknown.fix is not None
    assert unknown.fix.command == "sndr host connect gpu"
    behind = Effective("gpu", "22", "me", "ask", None, "jump")
    jump = problem_of(Ended("me@gpu", 255, words, Attempt("gpu"), effective=behind), was_connected=False)
    assert jump.message == "me@gpu cannot be reached."
    assert is_retried(unknown)
    assert is_retried(jump)
    new = problem_of(Ended("me@gpu", 255, words, Attempt("gpu"), stood_before=False), was_connected=False)
    assert not is_retried(new), "it was mistyped, or waits for a VPN: a person knows which"
    assert new.fix is not None
    assert new.fix.command == "sndr host remove gpu"
    assert "sndr host change gpu" in new.fix.text


def test_too_many_keys_are_told_from_too_many_passwords() -> None:
    words = "Received disconnect from 1.2.3.4 port 22:2: Too many authentication failures"
    keys = problem_of(Ended("gpu", 255, words, Attempt("gpu")), was_connected=False)
    assert (
        keys.cause == "Your agent offered more keys than it takes, and the right one was not among the first."
    )
    assert keys.fix is not None
    assert "IdentitiesOnly yes" in keys.fix.text
    asked = question_of(Attempt("gpu"), "me@gpu's password: ", "")
    typed = problem_of(Ended("gpu", 255, words, Attempt("gpu", asked=[asked])), was_connected=False)
    assert "agent offered" not in typed.cause


def test_what_a_jump_host_says_is_the_cause_and_not_the_end_of_ssh_that_follows() -> None:
    words = "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\n"
    ended = Ended("gpu", 255, f"{words}Connection closed by UNKNOWN port 65535", Attempt("gpu"))
    cause = problem_of(ended, was_connected=False).cause
    assert cause == "The jump host before it says: Connection refused"


def test_one_that_stood_was_lost_and_is_tried_again() -> None:
    assert reason("", was_connected=True, code=-9) is Reason.SSH_LOST
    assert reason("Connection to gpu closed by remote host.", was_connected=True) is Reason.SSH_LOST
    assert reason("Connection closed by 1.2.3.4 port 22", was_connected=True) is Reason.SSH_LOST
    lost = problem_of(Ended("gpu", -9, "", Attempt("gpu")), was_connected=True)
    assert is_retried(lost)
    assert lost.fix is not None
    assert lost.fix.command == "sndr host connect gpu"
    silent = Ended("gpu", 255, "Timeout, server 10.0.0.1 not responding.", Attempt("gpu"))
    assert "the machine hangs" in problem_of(silent, was_connected=True).cause
    assert not is_retried(lost.model_copy(update={"reason": Reason.SSH_AUTH_FAILED}))
    assert not is_retried(lost.model_copy(update={"reason": Reason.HOST_KEY_CHANGED}))


EFFECTIVE = Effective("10.0.0.1", "22", "me", "ask", "gpu; id", None, ("/far/.ssh/known_hosts", "/far/2"))


def test_a_changed_key_says_where_the_old_one_is_and_its_command_is_quoted() -> None:
    ended = Ended("gpu", 255, "", Attempt("gpu"), CHANGED, EFFECTIVE)
    problem = problem_of(ended, was_connected=False)
    assert "line 7 of /far/.ssh/known_hosts" in problem.cause
    assert "SHA256:abc" in problem.cause
    assert problem.fix is not None
    assert problem.fix.command == "ssh-keygen -f /far/.ssh/known_hosts -R 'gpu; id'"


def test_a_server_cannot_say_that_a_key_changed() -> None:
    denied = "me@gpu: Permission denied (publickey)."
    ended = Ended("gpu", 255, CHANGED, Attempt("gpu"), denied, EFFECTIVE)
    assert problem_of(ended, was_connected=False).reason is Reason.SSH_AUTH_FAILED
    goodbye = f"Received disconnect from 1.2.3.4 port 22:11: bye\n{CHANGED}{denied}"
    ended = Ended("gpu", 255, "", Attempt("gpu"), goodbye, EFFECTIVE)
    assert problem_of(ended, was_connected=False).reason is Reason.SSH_AUTH_FAILED
    # Nor, behind a jump host, whose ssh writes to the same place: that waits for a person.
    ended = Ended("gpu", 255, CHANGED, Attempt("gpu"), "", replace(EFFECTIVE, jump="jump"))
    problem = problem_of(ended, was_connected=False)
    assert (problem.reason, problem.fix and problem.fix.command) == (Reason.SSH_FAILED, "ssh gpu")


def test_a_changed_key_names_no_file_that_ssh_does_not_use() -> None:
    told = CHANGED.replace("/far/.ssh/known_hosts", "/etc/passwd")
    problem = problem_of(Ended("gpu", 255, "", Attempt("gpu"), told, EFFECTIVE), was_connected=False)
    assert problem.fix is not None
    assert problem.fix.command == "ssh-keygen -f /far/.ssh/known_hosts -R 'gpu; id'"


def test_a_channel_that_was_refused_is_not_why_a_connection_ended() -> None:
    words = "channel 3: open failed: administratively prohibited: open failed\n"
    assert reason(f"{words}Timeout, server gpu not responding.", was_connected=True) is Reason.SSH_LOST
    assert reason(words, was_connected=True) is Reason.SSH_LOST


@pytest.mark.parametrize(
    ("prompt", "hint", "kind", "secret"),
    [
        ("The authenticity of host '[127.0.0.1]:2 ([127.0.0.1]:2)' can't be established.\n"
         "ED25519 key fingerprint is SHA256:abc+/.\nAre you sure you want to go", "", "host_key", False),
        ("Please type 'yes', 'no' or the fingerprint: ", "", "host_key", False),
        ("Enter passphrase for key '/k': ", "", "passphrase", True),
        ("Enter PIN for ED25519-SK key /k: ", "", "passphrase", True),
        ("me@gpu's password: ", "", "password", True),
        ("(me@gpu) Password: ", "", "password", True),
        ("Allow use of key x?", "confirm", "confirm", False),
        ("Confirm user presence for key ED25519-SK", "none", "confirm", False),
        ("(me@gpu) One-time code: ", "", "other", True),
        ("\x1b[2J" * 9000, "", "other", True),
    ],
)  # fmt: skip
def test_questions(prompt: str, hint: str, kind: str, secret: bool) -> None:
    question = question_of(Attempt("gpu"), prompt, hint)
    assert (question.kind.value, question.secret) == (kind, secret)
    assert len(question.text) < 5000
    if "SHA256" in prompt:
        assert (question.key_type, question.fingerprint) == ("ED25519", "SHA256:abc+/")
