"""Descriptions of operations and parameters in the OpenAPI document, for those without one of their own."""

OPERATION_DESCRIPTIONS = {
    # --- records ------------------------------------------------------------------------------------------
    "importAgent": "The body is the configuration of a nova agent. The response lists the keys that were not "
    "imported.",
    "importSoul": "The file becomes the text of a new soul.",
    "getIdentityFile": "As Markdown, like the file that was imported.",
    "getSoulFile": "As Markdown, like the file that was imported.",
    "getUserProfileFile": "As Markdown, like the file that was imported.",
    "createMemoryComment": "Participants are notified.",
    "deleteMemoryComment": "Only for its author.",
    "listMemoryComments": "Oldest first.",
    "approveMemory": "The memory becomes active, and prompts contain it.",
    "supersedeMemory": "The memory is no longer part of prompts. The newer one takes its place.",
    "removeResponsibility": "For bots, which know the title from the prompt. A bot key must be "
    "limited to specific agents.",
    "completeTaskStep": "Steps are counted from 0. `is_done: false` opens a step again.",
    # --- keys and members ---------------------------------------------------------------------------------
    "getMe": "Workspace, kind, verbs, limits and expiry of the key, and the prompts that it may fetch.",
    "getWorkspace": "Send the ETag of the response as If-Match to change it.",
    "listKeys": "Secrets are not shown; `prefix` tells keys apart.",
    "createKey": "The response contains the secret, which is shown only once. The new key cannot have wider "
    "scopes than the key that creates it.",
    "getKey": "The secret is not shown.",
    "rotateKey": "Creates a key with the same scopes. The old key stays valid for `overlap_hours`.",
    "revokeKey": "The key stops working immediately.",
    "listMembers": "The members of the workspace with their roles.",
    "getMember": "The ETag is needed to change or remove the member.",
    "getInvitation": "An invitation that was neither accepted nor withdrawn.",
    "listAuditEvents": "Only keys that can manage keys see the details of events about keys.",
    "listWebhooks": "Secrets are not shown.",
    "createWebhook": "It gets events from now on. Empty lists: all events.",
    "getWebhook": "The ETag is needed to change or delete the endpoint.",
    "updateWebhook": "`is_enabled` enables or disables the endpoint.",
    "deleteWebhook": "Also deletes its deliveries.",
    "rotateWebhookSecret": "For `overlap_hours`, deliveries are also signed with the old secret.",
    "createWebhookTest": "Only this endpoint gets the event `webhook.test`.",
    "listWebhookDeliveries": "Includes all attempts. Deliveries are kept for 30 days.",
    "resendWebhookDelivery": "The event is sent again with the same id.",
    "listEvents": "Continue with `after` and the `sequence` of the last event that you have.",
    # --- skills, sources, context files -------------------------------------------------------------------
    "importSkill": "The skill is not assigned to any agent.",
    "getSkillFile": "Markdown, or JSON if only `application/json` is accepted.",
    "listAgentSkills": "As they are now, released or not: skill records and discovered skills, in the "
    "order of the prompt. Bots list what is released at `…/channels/{channel}/skills`.",
    "getAgentSkill": "For the tool that loads a skill: the instructions as of the released version. The read "
    "is recorded in the ledger. Send the ETag of your copy as If-None-Match.",
    "listPromptSkills": "The skills of the version that the label points to, with digests and without text.",
    "getPromptSkill": "The instructions as of the version that the label points to. The read is recorded in "
    "the ledger. Send the ETag of your copy as If-None-Match.",
    "getPromptSkillFile": "The file as of the version that the label points to. Prompts name this URL. The "
    "read is recorded in the ledger.",
    "listDiscoveredSkills": "Skills that refresh runs found as SKILL.md files.",
    "getDiscoveredSkillTrust": "If approval is needed, prompts contain only approved skills.",
    "setDiscoveredSkillTrust": "`in_use` determines what happens to skills that prompts already contain.",
    "getDiscoveredSkill": "Includes its instructions and the agents that can use it.",
    "assignDiscoveredSkill": (
        "Assigns the skill to the agents that read its folder, to all agents, or to the selected ones."
    ),
    "copyDiscoveredSkill": "The copy can be edited here, and no longer follows the file.",
    "refreshSource": "Requests a refresh run. A worker runs it; the Location header has its URL.",
    "confirmSourceRemoval": "A run in which most files are missing is held and changes nothing until someone "
    "confirms it. To try again instead, refresh the source.",
    "listSourceRuns": "Includes the number of files that each run found, read and rejected.",
    "getSourceRun": "Includes the files and folders that the run skipped.",
    "listSourceFiles": "Only sources of the kind `pushed` have pushed files.",
    "pushSourceFiles": "Send the text of each file, or its bytes in base64. A rejected file keeps its former "
    "content. `quarantined` lists files that no prompt will contain.",
    "pushSourceFile": "Creates or replaces the file. If-Match is optional.",
    "deleteSourceFile": "The revisions of the file are kept. If-Match is optional.",
    "getRuleSet": "The rules of the workspace, or the built-in ones.",
    "listRuleSetRevisions": "Each change is a revision with author and content.",
    "listAllowedFolders": "Operators of the installation decide which folders sources may use.",
    "listContextFiles": "Includes SKILL.md files. `is_waiting=true` returns those of the inbox.",
    "getContextFile": "Includes the text that prompts contain. Secrets are masked.",
    "listContextFileRevisions": "Every content that the file has had, newest first.",
    "getContextFileRevision": "Includes quarantined text, so bot keys cannot use it. Secrets are masked.",
    "approveContextFiles": "Each file is approved with the content that you have seen. The response lists "
    "those that have changed since.",
    "approveContextFile": "Approves the content with this digest, or the removal of the file.",
    "ignoreContextFile": "No prompt contains the file until someone stops ignoring it.",
    "unignoreContextFile": "The file needs a decision again.",
    "waiveContextFile": "Prompts may contain the revision until the given day.",
    "endContextFileWaiver": "The revision is quarantined again.",
    "getAgentContext": "The sources that the agent reads, and the files that its prompts contain.",
    "replaceAgentContext": "The sources that the agent reads, and its settings for files and skills.",
    "deleteAgentContext": "The agent then reads what its parent reads.",
    # --- prompts ------------------------------------------------------------------------------------------
    "getPrompt": "Returns the version that the label points to, and records the fetch in the ledger. Send "
    "the ETag of your copy as If-None-Match.",
    "getPromptText": "The text of the prompt as Markdown. The fetch is recorded in the ledger.",
    "renderPrompt": "Like `getPrompt`, with the values of one call: time, task, tools, session. The response "
    "is recorded in the ledger.",
    "batchGetPrompts": "One result per prompt, in the order of the request. A prompt that fails does not "
    "affect the others.",
    "listPrompts": "One prompt per agent and channel, with its labels and its latest version.",
    "rebuildPrompts": "A prompt gets a new version only if its text has changed.",
    "listPromptVersions": "Without texts; for bot keys also without author, message and causes.",
    "getPromptVersionByNumber": "Does not contain the text. Get it by its digest.",
    "getPromptVersion": "Several prompts can have a version with this digest: `first` is the first of them.",
    "listPromptVersionUsages": "The same text has the same digest.",
    "getPromptVersionProvenance": "In another prompt, the same text can come from other records. "
    "Name the agent and channel; otherwise the first prompt is used.",
    "diffPromptVersions": "Contains text of both versions, so bot keys cannot use it.",
    "listPromptVersionComments": "Oldest first. Comments can quote the text, so bot keys cannot use it.",
    "createPromptVersionComment": "Participants are notified.",
    "deletePromptVersionComment": "Only for its author.",
    "listPromptVersionSizes": "Records, files, layout text and tool definitions.",
    "verifyPromptVersion": "Computed for each request. Erased text is not an error: its digests are kept.",
    # --- ledger -------------------------------------------------------------------------------------------
    "listLedgerEntries": "A bot key sees only its own fetches.",
    "listOutdatedBots": "Bots whose last fetch returned another version than they would get now.",
    "getLedgerEntry": "Includes the values of the call, except for bot keys.",
    "replayLedgerEntry": "The text is compared with the recorded digest. If it differs, the response is 409.",
    "getLedgerEvidence": "A bundle that can be verified without this server.",
    "replayPrompt": "The version that the label pointed to at that time. No ledger entry is written.",
    "getReplayEvidence": "A bundle that can be verified without this server.",
    "listVerifications": "Each run verifies all hash chains of the workspace.",
    "getVerification": "Includes the errors that were found.",
    "reportPromptUse": "A bot reports the digest of the prompt it used, and gets the matching "
    "versions. If it sends the text, the response lists the lines that differ "
    "from the served text.",
    "listBots": "Compares the released version of the label, the last fetch and the last report of each key. "
    "Those with problems come first. A bot key sees only itself.",
    "listPromptReports": "A bot key sees only its own reports.",
    # --- labels and releases ------------------------------------------------------------------------------
    "listLabels": "Includes the number of prompts that have each label.",
    "protectLabel": "Only owners can move a protected label.",
    "listPromptLabels": "`latest` is not listed: it always points to the latest version.",
    "unpinProduction": "After a rollback, production stays where it is until someone calls this.",
    "getLabel": "The ETag is needed to move or delete the label.",
    "moveLabel": 'Send where the label points now in If-Match ("0" for no label) or in `expected`. '
    "`production` can only be moved by builds, releases and rollbacks.",
    "deleteLabel": "Bots that fetch with this label then get 404.",
    "rollbackLabel": (
        "Moves the label to the version before the last move, or to `to`. Production is then pinned."
    ),
    "listLabelMoves": "The moves form a hash chain.",
    "listReleases": "The list does not include their prompts.",
    "createRelease": "Where approval is required, another member must approve it.",
    "getRelease": "Includes the prompts that it contains.",
    "listReleaseComments": "Oldest first.",
    "createReleaseComment": "Participants are notified.",
    "requestReleaseAgain": "With the latest versions. An approval of others no longer counts.",
    "requestReleaseReview": "The members are notified.",
    "requestReleaseChanges": "An approved release waits for approval again.",
    "approveRelease": "Not possible for the member who requested it.",
    "rejectRelease": "The labels stay where they are.",
    "withdrawRelease": "Only for the member who requested it.",
    "publishRelease": "Moves the labels of all its prompts together.",
    "overrideRelease": "For emergencies. The reason is recorded in the audit log.",
    # --- erasure, preview, settings -----------------------------------------------------------------------
    "listErasures": "Includes their progress.",
    "createErasure": "Removes its text from records, versions and the ledger. This cannot be undone. 202: "
    "prompts are still being rebuilt.",
    "previewErasure": "Counts the versions that would be refused, and lists what else contains the text.",
    "getErasure": "Includes its progress.",
    "listErasureVersions": "Their hashes are kept, their text is not.",
    "getRebuildProgress": "Workers rebuild prompts after changes that affect many of them.",
    "previewPrompt": "Nothing is stored, and bots cannot fetch it.",
    "previewImpact": "Nothing is stored.",
    "listPromptSettings": "Only levels that have settings.",
}
SETTINGS_DESCRIPTION = "Settings that are null are inherited from the next level."
OPERATION_DESCRIPTIONS |= {
    f"{verb}{level}PromptSettings": text
    for level in ("Workspace", "Agent", "Channel", "AgentChannel")
    for verb, text in (
        ("get", SETTINGS_DESCRIPTION),
        ("replace", f'{SETTINGS_DESCRIPTION} If-Match is "0" the first time.'),
    )
}
# Query parameters without a description of their own.
PARAMETER_DESCRIPTIONS = {
    "agent": "Only records of this agent.",
    "channel": "The slug of a channel.",
    "is_known_version": "Only reports whose digest matches a version, or does not.",
    "kind": "Only rows of this kind.",
    "label": "The name of a label.",
    "object_id": "The id of a record.",
    "request_id": "The id of a request.",
    "trace_id": "The trace ID of the header traceparent.",
    "since": "Only rows at this time or later.",
    "status": "Only rows with this status.",
    "updated_since": "Only rows changed at this time or later.",
    "verb": "Only events with this verb.",
}
