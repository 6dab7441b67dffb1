from tests.browser.test_accounts import *
def test_t(stranger, alice_with_password):
    sign_in(stranger)
    s = stranger.go("/accounts/2fa/totp/activate/")
    print("STATUS", s, stranger.page.url)
    print(stranger.page.get_by_role("main").inner_text())
    s = stranger.go("/accounts/2fa/webauthn/add/")
    print("STATUS", s, stranger.page.url)
    print(stranger.page.get_by_role("main").inner_text())
