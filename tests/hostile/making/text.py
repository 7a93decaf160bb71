"""Strings as nobody should write them, for every place that takes one from outside."""

from hypothesis import strategies as st

HOSTILE = (
    "",
    " ",
    "\0",
    "a\0b",
    "\x1b[2J\x1b]52;c;Zm9v\x07",
    "\x1b]8;;file:///etc/passwd\x1b\\here\x1b]8;;\x1b\\",
    "\x9b31m",
    "\r\nSet-Cookie: a=b",
    "a\nb",
    "\u2028\u2029\x85\x0b\x0c",
    "\u202egnp.exe",
    "\ufeff",
    "\U0001f600" * 3,
    "e\u0301" * 5,
    "\u0130\u0131ſß",
    "../../../../.bash_profile",
    "/etc/passwd",
    "~root/.ssh/id_rsa",
    "C:\\Windows\\System32",
    "-rf",
    "--mcp-servers-json",
    "; touch /tmp/owned",
    "$(touch /tmp/owned)",
    "`touch /tmp/owned`",
    "' OR 1=1 --",
    "<b>bold</b>",
    "<img src='file:///dev/zero'>",
    "![](file:///dev/zero)",
    '<a href="javascript:alert(1)">x</a>',
    "<style>*{color:red}</style>",
    "&lt;b&gt;",
    "{0}{1}{model.__class__}",
    "%s%n%x",
    "{{ ''.__class__.__mro__ }}",
    "{% for x in range(10**9) %}{% endfor %}",
    "re:(a+)+$",
    "*" * 60,
    "a" * 300,
    "NaN",
    "Infinity",
    "1e999",
    "9" * 400,
    "²",
    "٣",
    "null",
    "[" * 50,
    "data:text/html,<script>",
    "file:///etc/hostname",
)

words = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=40),
    st.text(alphabet="abc./-_~ \n\t\x1b<>&{}[]\"'`$\\0123456789", max_size=60),
)
"""Texts of all kinds, without halves of letters."""

long_words = st.builds(lambda piece, times: piece * times, st.sampled_from(HOSTILE), st.integers(1, 2_000))
"""The same, long."""

file_names = st.one_of(
    st.sampled_from([*HOSTILE, "con", "a" * 255, ".", "..", "...", "a/b", "\udcff.gguf", "\udc80"]),
    st.text(min_size=1, max_size=30),
)
"""Names of files; those that no file can have too."""
