import Alpine from "@alpinejs/csp";
import { listen as behave } from "./behaviours.js";
import { listen as choose } from "./bulk.js";
import { listen as keepDrafts } from "./drafts.js";
import { listen as pickPrompts } from "./fleet.js";
import { palette } from "./palette.js";
import { listen as peek } from "./peeks.js";
import { listen as showProgress } from "./progress.js";
import { listen as hearKeys, singleKeys } from "./shortcuts.js";
import { listen as putInOrder } from "./sortable.js";
import { listen as tellNews } from "./telling.js";
import { themeSwitch } from "./theme_switch.js";
import { listen as hearToasts } from "./toasts.js";

Alpine.data("palette", palette);
Alpine.data("singleKeys", singleKeys);
Alpine.data("themeSwitch", themeSwitch);
behave();
// After the behaviours, which may hold a form back by a question.
showProgress();
hearToasts();
tellNews();
choose();
keepDrafts();
pickPrompts();
hearKeys();
putInOrder();
peek();
Alpine.start();
