"""How credentials look that somebody has given a look: keys of services, and passwords behind options of commands.

Out: patterns, and signs of which one is in each text that holds one. Law: each pattern takes time in proportion to the
length of a text. The formats are those that services document for scanners of secrets.
"""

from __future__ import annotations

from typing import Final

_AT_START: Final = r"(?<![A-Za-z0-9])"
# By service: what it begins with, and what follows.
_KEYS: Final = (
    (("dop_v1_", "doo_v1_", "dor_v1_"), r"[0-9a-f]{32,}"),  # DigitalOcean
    (("shpat_", "shpca_", "shppa_", "shpss_"), r"[0-9A-Fa-f]{24,}"),  # Shopify
    (("sq0atp-", "sq0csp-", "sq0idp-"), r"[\w-]{20,}"),  # Square
    (("lin_api_", "lin_oauth_"), r"[A-Za-z0-9]{24,}"),  # Linear
    (("glsa_", "glc_"), r"[\w+/=-]{24,}"),  # Grafana
    (("AGE-SECRET-KEY-1",), r"[0-9A-Z]{32,}"),
    (("hvs.", "hvb.", "hvr."), r"[\w-]{20,}"),  # Vault
    (("gldt-", "glrt-", "glft-", "glcbt-", "glptt-", "glimt-", "glagent-", "glsoat-", "gloas-"), r"[\w-]{16,}"),
    (("ATATT3", "ATCTT3", "ATBB"), r"[\w=-]{24,}"),  # Atlassian
    (("sntrys_", "sntryu_"), r"[\w+/=-]{24,}"),  # Sentry
    (("pscale_tkn_", "pscale_pw_", "pscale_oauth_"), r"[\w.=-]{24,}"),  # PlanetScale
    (("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), r"[\w.-]{24,}"),  # Doppler
    (("dckr_pat_", "dckr_oat_"), r"[\w-]{20,}"),  # Docker
    (("NRAK-", "NRJS-", "NRRA-", "NRII-"), r"[\w-]{16,}"),  # New Relic
    (("HRKU-", "PMAK-", "CCIPAT_", "GOCSPX-", "EZAK", "EZTK"), r"[\w-]{24,}"),  # Heroku, Postman, CircleCI, Google
    (("rubygems_", "figd_", "gsk_", "xai-", "r8_", "nfp_", "sbp_", "whsec_", "rk_test_"), r"[\w-]{24,}"),
    (("tfp_", "aio_"), r"[\w-]{24,}"),  # Typeform, Adafruit
    (("ntn_", "pul-", "bkua_", "fo1_", "fm2_", "xkeysib-", "xsmtpsib-", "dt0c01.", "LTAI"), r"[\w.+/=-]{16,}"),
    (("shippo_live_", "shippo_test_", "secret_live_", "key-"), r"[0-9a-f]{32,}"),
)  # fmt: skip
PREFIXED: Final = (
    *(
        rf"{_AT_START}(?:{'|'.join(each.replace('.', '[.]') for each in beginnings)}){rest}"
        for beginnings, rest in _KEYS
    ),
    r"(?<![\w:])[0-9]{8,10}:AA[\w-]{30,}",  # Telegram
    r"(?<=\.atlasv1\.)[\w-]{40,}",  # Terraform
    r"(?<=/api/webhooks/)[0-9]{8,24}/[\w-]{30,}",  # Discord
)
# What stands before a password in a command or in its file, to be kept; behind it is the password.
BEFORE_PASSWORDS: Final = (
    r"\blogin\s{1,32}[^\s]{1,200}\s{1,32}passw(?:or)?d\s{1,32}",  # netrc
    r"\bsshpass\s{1,32}-p\s{0,32}",
    r"(?<![\w-])(?:-u|--user)[ =]{1,8}[\"']?[A-Za-z_][\w.@-]{0,80}:",  # curl
)
SIGNS: Final = (
    *sorted({each.lower() for beginnings, _ in _KEYS for each in beginnings}),
    ":aa", ".atlasv1.", "/api/webhooks/", "login", "sshpass", "-u ", "-u=", "--user",
)  # fmt: skip
