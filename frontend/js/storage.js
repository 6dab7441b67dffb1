// Small preferences in localStorage; if storage is blocked they are not remembered.
export function loadItem(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function storeItem(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // Nothing to do.
  }
}
