import { Sheet } from "../ui/sheet.js";
import * as words from "../words.js";
import "./help.css";

/** The keyboard shortcuts. */
export function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Sheet id="help" title={words.HELP.title} place="middle" open={open} onClose={onClose}>
      <dl class="keys">
        {words.HELP.keys.map(([key, action]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{action}</dd>
          </div>
        ))}
      </dl>
      <p class="help-more">{words.HELP.more}</p>
    </Sheet>
  );
}
