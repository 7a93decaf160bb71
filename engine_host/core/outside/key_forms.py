"""The forms of keys by which issuers can be told: one table, each row with an example that is none."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyForm:
    """A form: its issuer, a pattern of the whole key, and a text in that form."""

    issuer: str
    pattern: str
    example: str


_FILL = "Example0Example1Example2Example3Example4"


def _form(issuer: str, begins: str, letters: str = "[A-Za-z0-9]", least: int = 20) -> KeyForm:
    """A key that begins with a fixed text, after which `least` letters follow or more."""
    fill = _FILL if letters != _HEX else "0123456789abcdef" * 3
    escaped = begins.replace(".", r"\.")
    return KeyForm(issuer, f"{escaped}{letters}{{{least},}}", f"{begins}{fill[: max(least, 16)]}")


_HEX = "[0-9a-f]"
_WORD = "[A-Za-z0-9_-]"
# No letter that a pattern takes may stand at its beginning: none looks twice at what it passed in vain.
KEY_FORMS = (
    KeyForm(
        "OpenAI, Anthropic, OpenRouter, DeepSeek and more", rf"sk-{_WORD}{{8,}}", "sk-ant-Example0Example1"
    ),
    KeyForm("Stripe", r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}", "sk_live_Example0Ex"),
    KeyForm("this program", rf"sndr-{_WORD}{{30,}}", f"sndr-{_FILL}"),
    KeyForm("Novita and others", r"sk_[A-Za-z0-9]{24,}", f"sk_{_FILL[:32]}"),
    _form("Stripe's webhooks", "whsec_"),
    _form("NVIDIA", "nvapi-", _WORD),
    _form("Groq", "gsk_"),
    _form("xAI", "xai-"),
    _form("Perplexity", "pplx-"),
    _form("Cerebras", "csk-"),
    _form("Replicate", "r8_"),
    _form("Fireworks", "fw_"),
    _form("Together", "tgp_v1_", _WORD),
    _form("Hugging Face", "hf_", least=16),
    _form("Hugging Face's organizations", "api_org_"),
    _form("RunPod", "rpa_"),
    _form("Jina", "jina_"),
    _form("Tavily", "tvly-", _WORD),
    _form("E2B", "e2b_"),
    _form("Firecrawl", "fc-", _HEX, 32),
    _form("Pinecone", "pcsk_", "[A-Za-z0-9_]"),
    _form("Anyscale", "esecret_"),
    KeyForm("LangSmith", rf"lsv2_[ps][kt]_{_WORD}{{20,}}", f"lsv2_pt_{_FILL[:32]}"),
    _form("Weights & Biases", "wandb_v1_", _WORD),
    KeyForm("GitHub", r"gh[oprsu]_[A-Za-z0-9_-]{16,}", f"ghp_{_FILL[:20]}"),
    _form("GitHub, with a scope", "github_pat_", "[A-Za-z0-9_]"),
    KeyForm("GitLab", rf"gl(?:pat|dt|rt|cbt|ptt|soat|ft)-{_WORD}{{16,}}", f"glpat-{_FILL[:20]}"),
    _form("npm", "npm_"),
    _form("PyPI", "pypi-", _WORD),
    KeyForm("Docker", rf"dckr_(?:pat|oat)_{_WORD}{{16,}}", f"dckr_pat_{_FILL[:20]}"),
    KeyForm("Slack", r"xox[abeprs]-[A-Za-z0-9-]{10,}", "xoxb-Example0-Example1"),
    _form("Slack's apps", "xapp-", "[A-Za-z0-9-]"),
    KeyForm("AWS", r"A[KS]IA[A-Z0-9]{16}", "AKIAEXAMPLE0EXAMPLE0"),
    _form("Google", "AIza", _WORD),
    _form("Google's access tokens", "ya29.", _WORD, 16),
    _form("Google's clients", "GOCSPX-", _WORD),
    KeyForm("Google's refresh tokens", rf"1//0{_WORD}{{20,}}", f"1//0{_FILL[:24]}"),
    _form("Grafana", "glsa_", "[A-Za-z0-9_]"),
    _form("Grafana Cloud", "glc_", "[A-Za-z0-9=+/]"),
    KeyForm("DigitalOcean", r"do[opr]_v1_[0-9a-f]{32,}", "dop_v1_" + "0123456789abcdef" * 2),
    _form("Databricks", "dapi", _HEX, 32),
    KeyForm("Vault", rf"hv[bsr]\.{_WORD}{{20,}}", f"hvs.{_FILL[:24]}"),
    KeyForm("SendGrid", rf"SG\.{_WORD}{{16,}}+\.{_WORD}{{16,}}", f"SG.{_FILL[:20]}.{_FILL[:20]}"),
    KeyForm("Shopify", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}", "shpat_" + "0123456789abcdef" * 2),
    KeyForm("Doppler", r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{20,}", f"dp.pt.{_FILL[:24]}"),
    KeyForm("Telegram", rf"[0-9]{{8,10}}:AA{_WORD}{{30,}}", f"123456789:AA{_FILL[:34]}"),
    KeyForm("Tailscale", r"tskey-[a-z]{2,12}-[A-Za-z0-9-]{10,}", f"tskey-auth-{_FILL[:16]}"),
    KeyForm("Supabase", r"(?:sbp_|sb_secret_)[A-Za-z0-9_-]{20,}", f"sbp_{_FILL[:24]}"),
    KeyForm("Sentry", r"sntry[su]_[A-Za-z0-9+/=_-]{20,}", f"sntrys_{_FILL[:24]}"),
    KeyForm("Fly.io", r"fm[12][a-z]?_[A-Za-z0-9+/=_-]{20,}", f"fm2_{_FILL[:24]}"),
    KeyForm("Atlassian", r"AT(?:ATT3|BB|CTT3)[A-Za-z0-9+/=_-]{20,}", f"ATATT3{_FILL[:24]}"),
    _form("Linear", "lin_api_"),
    _form("Notion", "ntn_"),
    KeyForm("New Relic", r"NRAK-[A-Z0-9]{20,}", "NRAK-" + "EXAMPLE0" * 3),
    _form("Postman", "PMAK-", "[A-Za-z0-9-]"),
    _form("Figma", "figd_", _WORD),
    KeyForm("age", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}", "AGE-SECRET-KEY-1" + "EXAMPLE0" * 4),
)
