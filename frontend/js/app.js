import Alpine from "@alpinejs/csp";
import { listen as behave } from "./behaviours.js";
import { palette } from "./palette.js";
import { listen as hearKeys, singleKeys } from "./shortcuts.js";
import { themeSwitch } from "./theme_switch.js";

Alpine.data("palette", palette);
Alpine.data("singleKeys", singleKeys);
Alpine.data("themeSwitch", themeSwitch);
behave();
hearKeys();
Alpine.start();
