interface AudioSession {
  type: string;
}

/**
 * Declares to Safari that the page plays and records, as a call does (Audio Session API), so that one does
 * not silence the other. The returned function undoes this.
 */
export function claimAudioSession(): () => void {
  const session = (navigator as { audioSession?: AudioSession }).audioSession;
  if (session === undefined) {
    return () => undefined;
  }
  const before = session.type;
  session.type = "play-and-record";
  return () => {
    session.type = before;
  };
}
