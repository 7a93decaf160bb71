"""The words and signs of each language: one word for one thing, its own quotes, the same final point."""

import re
from collections.abc import Iterator

from po import Entry

QUOTES = {"de": "„“", "ru": "«»", "zh": "“”", "ja": "「」"}
_POINTS = {"de": ".", "ru": ".", "zh": "。", "ja": "。"}
_CJK = "\u3040-\u30ff\u4e00-\u9fff"
# Where the English message has the first pattern, its translation must not have the second; and what to say.
_STRAY = {
    "de": (
        ("", r"[\d}] ?%(?!})", "geschütztes Leerzeichen vor %"),
        ("", r"\b([Dd]u|[Dd]ich|[Dd]ir|[Dd]ein(e[nmrs]?)?)\b", "Sie, Ihr"),
        (r"\bjobs?\b(?! lists)", r"\bJobs?\b", "Auftrag"),
    ),
    "ru": (
        ("", r"[\d}] ?%(?!})", "неразрывный пробел перед %"),
        ("", r"[KMGT]iB|tok/s|[\d}] (W|ms|s|min|h)\b", "единицы кириллицей: ГиБ, ток/с, Вт, мс"),
        ("", r"ндпойнт|екпойнт|[Кк]еш", "эндпоинт, чекпоинт, кэш"),
        ("", r"\b(эта|этой|эту|нужна|каждой|пригодной) GPU", "GPU мужского рода"),
        (r"^(?!.*\bload).*\bdownload", r"[Зз]агру[жз]", "скачать; «загрузить» — в память"),
        (r"\bruns\b", r"прогон", "замер"),
    ),
    "zh": (
        ("", r"[\d}]\s%", "% 前无空格"),
        ("", r"您", "你"),
        ("", r"提供方", "提供商"),
        ("", r"其它|登陆|帐号|阀值", "其他，登录，账号，阈值"),
        ("", rf"[{_CJK}][,;!?]|(?<!;)[,;!?][{_CJK}]", "全角标点"),
        (r"\bVRAM\b", r"^(?!.*显存)", "显存"),
    ),
    "ja": (
        ("", r"[\d}]\s%", "% の前に空白なし"),
        ("", r"(?<!入)手元|先方", "ローカル、リモート"),
        ("", r"測定", "計測"),
        ("", r"(?<!CUDA )(?<!固定)版", "バージョン"),
        ("", r"[（）]", "半角の括弧"),
        ("", rf"[{_CJK}][,;!?]", "全角の句読点"),
        ("", r"(サーバ|フォルダ|ユーザ|ドライバ|コンパイラ|プロバイダ|ヘッダ|エディタ)(?!ー)", "末尾の長音"),
    ),
}


def strays(language: str, entries: list[Entry]) -> list[str]:
    """Return where a translation has words or signs that the rest of its language does not have."""
    return [
        f"{entry.one!r}: {fault}: {said!r}"
        for entry in entries
        for said in entry.said
        if said
        for fault in _strays(language, entry.one, said)
    ]


def _strays(language: str, english: str, said: str) -> Iterator[str]:
    for where, stray, instead in _STRAY[language]:
        if re.search(where, english, re.IGNORECASE) and (found := re.search(stray, said)):
            yield f"{found[0] or 'a word'} in place of {instead}"
    if '"' in said and '"' not in english:
        yield f'" in place of {QUOTES[language]}'
    if "“" in english and not set(QUOTES[language]) <= set(said):
        yield f"other quotes than {QUOTES[language]}"
    if english.endswith(".") and said[-1] not in (_POINTS[language], ")", "）", "}"):
        yield "no final point"
