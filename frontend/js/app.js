import Alpine from "@alpinejs/csp";
import { listen as initAnnouncements } from "./announce.js";
import { listen as initBehaviours } from "./behaviours.js";
import { listen as initBulkActions } from "./bulk.js";
import { listen as initDrafts } from "./drafts.js";
import { listen as initFleet } from "./fleet.js";
import { palette } from "./palette.js";
import { listen as initPeeks } from "./peeks.js";
import { listen as initProgress } from "./progress.js";
import { listen as initShortcuts, singleKeys } from "./shortcuts.js";
import { listen as initSortable } from "./sortable.js";
import { themeSwitch } from "./theme_switch.js";
import { listen as initToasts } from "./toasts.js";

Alpine.data("palette", palette);
Alpine.data("singleKeys", singleKeys);
Alpine.data("themeSwitch", themeSwitch);
initBehaviours();
// After the behaviours: their confirmation dialog may cancel a submit.
initProgress();
initToasts();
initAnnouncements();
initBulkActions();
initDrafts();
initFleet();
initShortcuts();
initSortable();
initPeeks();
Alpine.start();
