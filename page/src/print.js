/** On paper the whole tree is shown, as large as the page is wide. */

export function setUpPrint(tree) {
  const paper = matchMedia("print");
  const arrange = (isPrinting) => {
    const { width, height } = tree.layout;
    if (isPrinting) {
      tree.frame.setAttribute("viewBox", `-10 -10 ${width + 40} ${height + 20}`);
      tree.content.removeAttribute("transform");
    } else if (tree.frame.hasAttribute("viewBox")) {
      tree.frame.removeAttribute("viewBox");
      tree.zoom.restore();
    }
  };
  paper.addEventListener("change", () => arrange(paper.matches));
  window.addEventListener("beforeprint", () => arrange(true));
  window.addEventListener("afterprint", () => arrange(false));
}
