"""All writing operations and pages: those whose examples change the text of a prompt, and the others.

A new operation or page belongs into one of the lists, or the test of R21 fails. `~` stands for a space.
"""

WAYS = """
    DELETE~agent-context DELETE~memories-one DELETE~responsibilities-one PATCH~agents-one PATCH~channels-one
    PATCH~identities-one PATCH~memories-one PATCH~responsibilities-one PATCH~skills-one PATCH~souls-one
    PATCH~tools-one PATCH~user-profiles-one POST~agents-restore-revision
    POST~channels-restore-revision POST~identities-restore-revision
    POST~memories-approve POST~memories-approve-many POST~memories-archive-many POST~memories-import
    POST~memories-list POST~memories-restore POST~memories-restore-many POST~memories-restore-revision
    POST~memories-supersede POST~responsibilities-archive-many POST~responsibilities-list
    POST~responsibilities-order POST~responsibilities-remove POST~responsibilities-restore
    POST~responsibilities-restore-many POST~responsibilities-restore-revision POST~skills-list
    POST~skills-restore-revision POST~souls-restore-revision POST~sources-files-push
    POST~tools-restore-revision POST~user-profiles-restore-revision PUT~agent-context PUT~agents-one
    PUT~channels-one PUT~identities-file PUT~identities-one PUT~memories-one PUT~prompt-settings-agent
    PUT~prompt-settings-channel PUT~prompt-settings-prompt PUT~prompt-settings-workspace
    PUT~responsibilities-one PUT~skills-one PUT~souls-file PUT~souls-one PUT~sources-file PUT~tools-one
    PUT~user-profiles-file PUT~user-profiles-one agents:add-memory agents:edit agents:revert
    channels:edit channels:revert agent-context:choose agent-context:inherit
    identities:edit identities:revert memories:approve memories:archive
    memories:bulk memories:decide memories:edit memories:import memories:new memories:restore
    memories:revert memories:supersede prompt-settings:agent prompt-settings:channel prompt-settings:prompt
    prompt-settings:workspace quick-start:new responsibilities:archive responsibilities:bulk
    responsibilities:down responsibilities:edit responsibilities:new responsibilities:order
    responsibilities:restore responsibilities:revert responsibilities:up skills:edit skills:new
    skills:revert souls:edit souls:revert sources:upload tools:edit tools:revert user-profiles:edit
    user-profiles:revert
"""
# Their examples change no text that waits for an approval: other tables, records that no prompt uses, an edit
# without text, or an archived record.
OTHERS = """
    DELETE~agents-one DELETE~channels-one DELETE~identities-one DELETE~labels-one DELETE~members-one
    DELETE~memories-comment DELETE~rule-sets-one DELETE~skills-one DELETE~souls-one DELETE~sources-file
    DELETE~sources-one DELETE~tasks-one DELETE~tools-one DELETE~user-profiles-one DELETE~versions-comment
    DELETE~webhooks-one PATCH~members-one PATCH~sources-one PATCH~tasks-one PATCH~webhooks-one
    PATCH~workspace-one POST~agents-archive-many POST~agents-import POST~agents-list POST~agents-restore
    POST~agents-restore-many POST~batch-get POST~channels-archive-many
    POST~channels-list POST~channels-restore POST~channels-restore-many POST~context-files-approve
    POST~context-files-approve-many POST~context-files-end-waiver POST~context-files-ignore
    POST~context-files-unignore POST~context-files-waive POST~erasures-list POST~erasures-preview
    POST~found-skills-assign
    POST~found-skills-copy POST~found-skills-trust POST~identities-archive-many POST~identities-import
    POST~identities-list POST~identities-restore POST~identities-restore-many POST~impact
    POST~invitations-list POST~invitations-resend POST~invitations-withdraw POST~keys-list POST~keys-revoke
    POST~keys-rotate POST~labels-unpin POST~labels-protect POST~labels-roll-back POST~memories-comments
    POST~memories-reject POST~memories-reject-many POST~preview POST~prompts-rebuild POST~prompts-report
    POST~rebuild POST~releases-approve POST~releases-comments POST~releases-list POST~releases-override
    POST~releases-publish POST~releases-reject POST~releases-requestAgain POST~releases-requestChanges
    POST~releases-requestReview POST~releases-withdraw POST~render POST~rule-sets-restore
    POST~rule-sets-restore-revision POST~skills-archive-many POST~skills-import POST~skills-restore
    POST~skills-restore-many POST~souls-archive-many POST~souls-import POST~souls-list POST~souls-restore
    POST~souls-restore-many POST~sources-confirm-removal POST~sources-list POST~sources-refresh
    POST~sources-restore POST~sources-restore-revision POST~tasks-archive-many POST~tasks-list
    POST~tasks-restore POST~tasks-restore-many POST~tasks-restore-revision POST~tasks-tick
    POST~tools-archive-many POST~tools-list POST~tools-restore POST~tools-restore-many
    POST~user-profiles-archive-many POST~user-profiles-import POST~user-profiles-list
    POST~user-profiles-restore POST~user-profiles-restore-many POST~verifications-list
    POST~versions-comments POST~webhooks-list POST~webhooks-redeliver POST~webhooks-rotate
    POST~webhooks-test POST~workspaces-list PUT~labels-one PUT~rule-sets-one PUT~sources-one PUT~tasks-one
    agents:archive agents:bulk agents:import agents:new agents:restore channels:archive
    channels:bulk channels:new channels:restore comments:delete comments:memory comments:version
    delete-workspace erasures:erase files:approve files:end-waiver files:unignore files:ignore files:assign
    files:reject files:waive fleet:bulk fleet:demo fleet:dismiss identities:archive identities:bulk
    identities:import identities:new identities:restore impact:edit impact:new inbox:approve-selected
    api-keys:bulk api-keys:new api-keys:revoke api-keys:rotate labels:protect ledger:retention
    members:hand-over members:invite
    members:leave members:remove members:resend members:role members:withdraw notifications:open
    notifications:preferences notifications:read notifications:read-all prompt-settings:revert
    quick-start:key quick-start:preview builds:everything releases:approve releases:publish
    releases:comment releases:new releases:override releases:reject releases:request-again
    releases:request-changes releases:request-review releases:withdraw rule-sets:edit rule-sets:reset
    rule-sets:restore rule-sets:revert skills:archive skills:bulk skills:check skills:copy skills:import
    skills:restore skills:trust-policy souls:archive souls:bulk souls:import souls:new souls:restore
    sources:archive sources:confirm-removal sources:edit sources:new sources:refresh sources:restore
    sources:revert studio:discard studio:layouts studio:preview studio:review studio:save tasks:archive
    tasks:bulk tasks:edit tasks:new tasks:restore tasks:revert tasks:tick tools:archive tools:bulk tools:new
    tools:restore user-profiles:archive user-profiles:bulk user-profiles:import user-profiles:new
    user-profiles:restore take-over-workspace
    integrity:run versions:unpin versions:label versions:rebuild versions:remove-label
    versions:roll-back webhooks:delete webhooks:edit webhooks:new webhooks:redeliver webhooks:rotate
    webhooks:test webhooks:toggle workspace-settings workspace-slug
"""
CHANGES_PROMPTS = frozenset(name.replace("~", " ") for name in WAYS.split())
CHANGES_NOTHING = frozenset(name.replace("~", " ") for name in OTHERS.split())
