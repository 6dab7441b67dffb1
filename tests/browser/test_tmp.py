def test_console(bobs):
    bobs.go(); bobs.page.evaluate("console.error('planted')")
def test_policy(bobs):
    bobs.go(); bobs.page.evaluate("() => { const s = document.createElement('script'); s.textContent='1'; document.head.append(s) }")
def test_foreign(bobs):
    bobs.page.goto("data:text/html,<img src='http://198.51.100.7/x.png'>", wait_until="commit"); bobs.page.wait_for_timeout(300)
def test_throw(bobs):
    bobs.go(); bobs.page.evaluate("() => { setTimeout(() => { throw new Error('planted') }) }"); bobs.page.wait_for_timeout(200)
