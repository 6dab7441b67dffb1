(()=>{var e=document.documentElement;e.classList.add("dr-js");try{let t=localStorage.getItem("theme");(t==="light"||t==="dark")&&(e.dataset.theme=t)}catch{}})();
