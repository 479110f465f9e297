import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import * as words from "../words.js";
import { Close } from "./icons.js";
import "./sheet.css";

interface SheetProps {
  id: string;
  title: string;
  open: boolean;
  onClose: () => void;
  /** side: over the right of the page; wide: over more of it; middle: small and centred. */
  place: "side" | "wide" | "middle";
  children: ComponentChildren;
}

/** A dialog over the page. The browser keeps the focus inside and restores it; Escape closes it. */
export function Sheet({ id, title, open, onClose, place, children }: SheetProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && dialog.current?.open === false) {
      dialog.current.showModal();
    } else if (!open) {
      dialog.current?.close();
    }
  }, [open]);
  // A click outside closes it. Not in a wide one, where the user may have written a lot.
  const outside = (event: MouseEvent): void => {
    if (event.target === dialog.current && place !== "wide") {
      onClose();
    }
  };
  return (
    <dialog ref={dialog} id={id} class={`sheet sheet-${place}`} aria-labelledby={`${id}-title`} onClose={onClose} onClick={outside}>
      <div class="sheet-inside">
        <header class="sheet-head">
          <h2 id={`${id}-title`}>{title}</h2>
          <button type="button" class="quiet icon-only" aria-label={words.CLOSE} onClick={onClose}>
            <Close />
          </button>
        </header>
        {open && children}
      </div>
    </dialog>
  );
}
