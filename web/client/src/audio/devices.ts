// Lists the microphones and loudspeakers.

/** An audio device to choose from. */
export interface Device {
  id: string;
  label: string;
}

/** Lists the microphones. Ids and labels are empty until the user allows access. */
export function listMicrophones(): Promise<Device[]> {
  return list("audioinput");
}

/** Lists the loudspeakers; empty if the browser does not let pages choose. */
export async function listSpeakers(): Promise<Device[]> {
  return canChoose() ? list("audiooutput") : [];
}

/** Reports whether the browser lets a page choose a loudspeaker. */
export function canChoose(): boolean {
  return "setSinkId" in (globalThis.HTMLMediaElement?.prototype ?? {});
}

async function list(kind: MediaDeviceKind): Promise<Device[]> {
  // Browsers hide mediaDevices from pages loaded over plain http, and servers have no navigator.
  const all = (await globalThis.navigator?.mediaDevices?.enumerateDevices()) ?? [];
  return all.filter((d) => d.kind === kind).map((d) => ({ id: d.deviceId, label: d.label }));
}

/** Calls back when devices are added or removed, often several times. Call the returned function to stop. */
export function onDeviceChange(call: () => void): () => void {
  const devices = navigator.mediaDevices as MediaDevices | undefined;
  devices?.addEventListener("devicechange", call);
  return () => devices?.removeEventListener("devicechange", call);
}

/** Returns the microphone permission; undefined if the browser does not report it. */
export async function microphonePermission(): Promise<PermissionState | undefined> {
  // Not every browser knows this name.
  const status = await navigator.permissions?.query({ name: "microphone" }).catch(() => undefined);
  return status?.state;
}

/** Like onDeviceChange, and also calls back when the permission changes, if the browser reports that. */
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
    // The browser does not know this permission.
    () => undefined,
  );
  const end = onDeviceChange(call);
  return () => {
    over = true;
    permission?.removeEventListener("change", allowed);
    end();
  };
}
