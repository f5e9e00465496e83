/* Answers: what the server says of a run, a line for each stage. */

/** The lines of an answer as they come, each as an object.
 * @param {Response} response */
export async function* messages(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    // Each piece is read when the one before is shown
    // oxlint-disable-next-line no-await-in-loop
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}
