"""The promises and their measurable goals."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """One row of docs/promises.md."""

    name: str
    title: str
    goal: str


PROMISES = (
    Promise(
        "R1",
        "A workspace never shows in, or changes from, another",
        "at least 3,000 cells (route, method, actor, own or other or missing): 0 leaks, 0 foreign rows "
        "changed, 0 routes without a row",
    ),
    Promise(
        "R2",
        "The API does what its schema says",
        "at least 10,000 generated calls with 3 seeds: 0 faults of the server, 0 answers that the schema "
        "does not name",
    ),
    Promise(
        "R3",
        "Versions are numbered 1 to n",
        "16 writers × 50: 800 versions, no gap, none twice, chain valid",
    ),
    Promise(
        "R4",
        "What was acknowledged is recorded",
        "20 SIGKILLs of the server under load, at least 10,000 acknowledged calls: 0 ledger rows missing, "
        "0 torn or duplicate versions, 0 broken links; a worker killed while it seals and while it signs: "
        "every row in one block, every checkpoint copied",
    ),
    Promise("R5", "No record, no prompt", "200 of 200 fetches get 503, 0 bytes of a prompt leave"),
    Promise(
        "R6",
        "Bots outlive Redis",
        "through a proxy that obeys /readyz; gone: 1,000 of 1,000 served, p99 at most twice that with Redis; "
        "frozen: all served, each ≤ 1.5 s, p99 at most twice that once the breaker is open; edits live "
        "≤ 60 s after its return",
    ),
    Promise(
        "R7",
        "The database may restart",
        "5 fast and 5 immediate restarts under load: steady ≤ 5 s after it takes connections, no process "
        "restarted, every failure a 503 with Retry-After; one in the middle of a job: done by the same "
        "worker in ≤ 60 s",
    ),
    Promise(
        "R8",
        "Bad input is refused and costs nothing",
        "at least 60 files, 40 YAML heads, 60 bodies, 2,000 mutations: the reason with its place, 0 faults "
        "of the server, each ≤ 1 s, nothing lost",
    ),
    Promise(
        "R9",
        "Tampering shows",
        "5,000 bytes flipped in memory and 5,000 in the database, rows deleted, inserted, swapped, cut off, "
        "rewritten, also with a foreign key: all found, the first bad row named; 100,000 rows verified in "
        "≤ 30 s",
    ),
    Promise(
        "R10",
        "Backups work",
        "10,000 versions and 100,000 ledger rows taken while others write, restored in ≤ 60 s: equal, chain "
        "valid, 200 prompts the same to the byte, revoked keys refused; a key revoked, a member removed and "
        "a memory erased after the backup stay so",
    ),
    Promise(
        "R11",
        "Revoked means revoked",
        "2 processes × 4 threads, 1,000 requests begun after the revocation: 0 accepted; keys and sessions, "
        "also after a password change, a removed second factor and the end from the list",
    ),
    Promise(
        "R12",
        "A retry makes one record",
        "100 keys × 10 posts at once: 100 records; another body 422, still running 409",
    ),
    Promise(
        "R13",
        "A refresh survives its worker",
        "TERM, KILL of the pool’s process, KILL of the worker, broker flushed: the current text live in "
        "≤ 60 s, one new version; sealing and signing jobs: completed by the next one",
    ),
    Promise(
        "R14",
        "Half-done never shows",
        "every API operation and page that writes fails after each of its writes: nothing is left in any "
        "table",
    ),
    Promise(
        "R17",
        "Erased means not to be found again",
        "canaries in 1, 2 and 5 records: versions with an erased one refused (410), the other records named; "
        "after the last one in 0 bytes of database files, write-ahead log, backup, logs and evidence; "
        "1,000,000 guesses against every stored digest: 0 hits; an older backup restored: still gone; "
        "the same text stored again restores nothing; no cached version is used without asking",
    ),
    Promise(
        "R18",
        "Nobody rewrites history unnoticed, and it is never unsigned for long",
        "against trusted keys and a copy from elsewhere: a rewrite with the own key, without a key, with "
        "replaced files found by one command; rows sealed in ≤ 3 min and signed in ≤ 2 h, or doctor and "
        "metrics report the workspace; 5,000 idle workspaces; worker killed 5 times while it signs: nothing "
        "lost",
    ),
    Promise(
        "R15",
        "Slow callers starve nobody",
        "200 connections that stall in head, body or reading, with and without a key: 1,000 of 1,000 "
        "fetches served, p99 ≤ 3 × that of the same run without them; each stalled one closed in ≤ 30 s, "
        "without a key in ≤ 5 s; no request longer than 30 s; the same with a name server and a mail server "
        "that hang",
    ),
    Promise(
        "R16",
        "A key or role never reaches beyond its scope, review included",
        "every operation × keys limited by each verb, by agent, channel and label, and by each combination: "
        "0 rows returned outside, 0 prompts, labels or records changed outside; 10,000 random sequences of "
        "two and three writes by keys without `approve` and `override`, policy changes included: production "
        "of reviewed agents unchanged; every field that names a record, filled with one that the key may not "
        "read: 0 links, 0 bytes of it",
    ),
    Promise(
        "R19",
        "No tenant or person takes another's share",
        "one person with 50 workspaces floods requests, builds of 1,000 agents, 200 sources, webhooks, "
        "pushes, verification and exports for 45 s: another's fetches all served, p99 ≤ 250 ms or ≤ 3 × that "
        "at a server of its own beside the flood, edits and files live in ≤ 60 s, heartbeat ≤ 60 s; bytes of "
        "calls and pushes within the quotas of workspace and person, then 429 with the reason; a full disk "
        "refuses writes with 503 and the reason, loses nothing acknowledged and needs no restart",
    ),
    Promise(
        "R22",
        "Emails cannot be misused",
        "every way to cause an email: links with the host of PUBLIC_URL under any Host header, messages per "
        "address and day bounded for each way and for all together, no header added by a name, the same "
        "answer for known and unknown addresses",
    ),
    Promise(
        "R20",
        "Outgoing requests are bounded",
        "200 hostile receivers (framings, headers, speeds, sizes): at most 1 MiB of memory for each that is "
        "served at a time, every attempt recorded, delays kept, 0 connections to internal addresses",
    ),
    Promise(
        "R23",
        "Everything a bot can read is released and recorded",
        "every operation that is open to bot keys × keys of 6 scopes, where each text has a released state "
        "and a draft: 0 drafts returned; text only with one ledger row, whose replay has the same bytes",
    ),
    Promise(
        "R21",
        "Nobody approves their own change",
        "every way to change a prompt × every identity of a person (page, admin key, bot key, rotated key, "
        "push, import), and 300 sequences of two and three changes by two people: approval 403 for each "
        "author, 200 for others",
    ),
)
