"""`python -m namoo.lessons` serves what `make docs` built, and says how to build it."""

import threading
import urllib.error
import urllib.request

import pytest

from namoo import lessons


@pytest.fixture
def site(tmp_path):
    for folder in ("lessons", "ko/lessons"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "index.html").write_text(folder)
    return tmp_path


def test_pages_come_with_the_headers_of_an_isolated_page(site):
    with lessons.server(site) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        try:
            root = f"http://127.0.0.1:{made.server_port}"
            with urllib.request.urlopen(f"{root}/ko/lessons/index.html") as answer:
                assert answer.read() == b"ko/lessons"
                assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
                assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{root}/../secret")
            refused.value.close()
        finally:
            made.shutdown()
            thread.join()


def test_a_folder_without_lessons_says_how_to_build_them(tmp_path, capsys):
    assert lessons.main(["ko", "--folder", str(tmp_path)]) == 1
    assert "make docs" in capsys.readouterr().err
