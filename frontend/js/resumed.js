// After a sign-in in between, the response to the stored request is shown under the address of the sign-in page.
// Replace that address, so that reloading the page opens the page that is shown.
export function listen() {
  const path = document.body.dataset.path;
  if (path) history.replaceState(history.state, "", path);
}
