# The installer for Windows: powershell -File packaging\windows\build.ps1, on Windows with Python 3.11 to 3.13 and Inno Setup 6.
#
# NEVER RUN by us yet, and the program itself has not been tried on Windows: its host wants Unix sockets.
$ErrorActionPreference = "Stop"
Set-Location (Join-Path $PSScriptRoot "..\..")
$version = (Select-String -Path pyproject.toml -Pattern '^version = "(.*)"').Matches[0].Groups[1].Value
$python = "build\windows\Scripts\python.exe"
py -3 -m venv build\windows
& $python -m pip install --quiet --require-hashes -r packaging/locks/run.lock
& $python packaging\demo_model\gguf_to_safetensors.py resources\models\sndr-demo\sndr-demo-q8_0.gguf resources\models\sndr-demo
& $python -m hatchling build -t wheel -d dist
& $python packaging\frozen\icons.py --ico packaging\windows\sndr.ico
& $python packaging\frozen\freeze.py (Get-ChildItem dist\sndr_control_center-*.whl | Select-Object -Last 1).FullName
& "${env:ProgramFiles(x86)}\Inno Setup 6\ISCC.exe" "/DVersion=$version" packaging\windows\sndr.iss
