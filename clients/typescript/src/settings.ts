/** Settings of a client: its options, or variables of the environment. */

/** How one call is sent. */
export interface CallOptions {
  /** How often the call is tried; default 3. */
  readonly attempts: number;
  /** Milliseconds for one attempt; default 5000. */
  readonly timeoutMs: number;
}

export interface Settings extends CallOptions {
  readonly url: string;
  readonly key: string;
  readonly cacheDir: string;
}

/** Options win over DRAMATIS_URL, DRAMATIS_KEY, DRAMATIS_CACHE_DIR, DRAMATIS_ATTEMPTS and DRAMATIS_TIMEOUT (seconds). */
export function readSettings(options: { readonly url?: string; readonly key?: string; readonly cacheDir?: string } & Partial<CallOptions>): Settings {
  return {
    url: requireSetting("url", options.url, "DRAMATIS_URL"),
    key: requireSetting("key", options.key, "DRAMATIS_KEY"),
    cacheDir: options.cacheDir ?? readVariable("DRAMATIS_CACHE_DIR"),
    ...validateCallOptions({
      attempts: options.attempts ?? readNumber("DRAMATIS_ATTEMPTS", 3),
      timeoutMs: options.timeoutMs ?? readNumber("DRAMATIS_TIMEOUT", 5) * 1000,
    }),
  };
}

/** Return the options of one call over those of the client. */
export function mergeCallOptions(defaults: CallOptions, options: Partial<CallOptions>): CallOptions {
  return validateCallOptions({
    attempts: options.attempts ?? defaults.attempts,
    timeoutMs: options.timeoutMs ?? defaults.timeoutMs,
  });
}

function validateCallOptions(options: CallOptions): CallOptions {
  if (!(options.attempts >= 1)) throw new TypeError("At least one attempt is required.");
  if (!(options.timeoutMs > 0)) throw new TypeError("The timeout must be greater than 0.");
  return options;
}

function requireSetting(name: string, value: string | undefined, variable: string): string {
  const setting = (value ?? readVariable(variable)).trim();
  if (!setting) throw new TypeError(`Pass \`${name}\` or set ${variable}.`);
  return setting;
}

function readNumber(variable: string, fallback: number): number {
  const text = readVariable(variable).trim();
  if (!text) return fallback;
  const value = Number(text);
  if (!Number.isFinite(value)) throw new TypeError(`${variable} must be a number.`);
  return value;
}

function readVariable(name: string): string {
  return globalThis.process?.env?.[name] ?? "";
}
