// The channels of a form with an agent: only those of the chosen agent are offered.
export function listen() {
  const source = document.getElementById("dr-agent-channels");
  const form = source?.closest("form");
  const agent = form?.elements.namedItem("agent");
  const channel = form?.elements.namedItem("channel");
  if (!agent || !channel) return;
  const channels = JSON.parse(source.textContent);
  const update = () => {
    const allowed = channels[agent.value] ?? [];
    for (const option of channel.options) option.hidden = option.disabled = option.value !== "" && !allowed.includes(option.value);
    if (channel.selectedOptions[0]?.disabled) channel.value = allowed[0] ?? "";
  };
  agent.addEventListener("change", update);
  update();
}
