// Types of the element <voicegw-call> for JSX. Also import "@voicegw/client/element", which defines it.
import type { VoicegwCall, VoicegwCallAttributes } from "@voicegw/client/element";
import type * as React from "react";

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "voicegw-call": React.DetailedHTMLProps<React.HTMLAttributes<VoicegwCall>, VoicegwCall> & VoicegwCallAttributes;
    }
  }
}

export type { VoicegwCallAttributes };
