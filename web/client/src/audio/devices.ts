// The microphones and loudspeakers there are.

/** A device to choose from. */
export interface Device {
  id: string;
  label: string;
}

/** The microphones there are. Ids and labels are empty until the user has allowed one. */
export function listMicrophones(): Promise<Device[]> {
  return list("audioinput");
}

/** The loudspeakers that a page may choose from; empty where the browser has no choice. */
export async function listSpeakers(): Promise<Device[]> {
  return canChoose() ? list("audiooutput") : [];
}

/** Whether the browser lets a page choose a loudspeaker. */
export function canChoose(): boolean {
  return "setSinkId" in (globalThis.HTMLMediaElement?.prototype ?? {});
}

async function list(kind: MediaDeviceKind): Promise<Device[]> {
  // Browsers hide mediaDevices from pages that came over plain http, and a server has no navigator.
  const all = (await globalThis.navigator?.mediaDevices?.enumerateDevices()) ?? [];
  return all.filter((d) => d.kind === kind).map((d) => ({ id: d.deviceId, label: d.label }));
}

/** Calls back when devices have come or gone, often more than once; what it returns ends that. */
export function onDeviceChange(call: () => void): () => void {
  const devices = navigator.mediaDevices as MediaDevices | undefined;
  devices?.addEventListener("devicechange", call);
  return () => devices?.removeEventListener("devicechange", call);
}

/** Whether the user has allowed the microphone; undefined where the browser does not tell. */
export async function microphonePermission(): Promise<PermissionState | undefined> {
  // Not every browser knows this name.
  const status = await navigator.permissions?.query({ name: "microphone" }).catch(() => undefined);
  return status?.state;
}

/** Like onDeviceChange, and when the user has allowed the microphone, where the browser tells. */
export function onMicrophoneChange(call: () => void): () => void {
  let permission: PermissionStatus | undefined;
  let over = false;
  const allowed = (): void => {
    if (permission?.state === "granted") {
      call();
    }
  };
  navigator.permissions?.query({ name: "microphone" }).then(
    (status) => {
      if (!over) {
        permission = status;
        permission.addEventListener("change", allowed);
      }
    },
    // A browser that does not know this permission.
    () => undefined,
  );
  const end = onDeviceChange(call);
  return () => {
    over = true;
    permission?.removeEventListener("change", allowed);
    end();
  };
}
