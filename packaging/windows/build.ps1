# The installer for Windows: powershell -File packaging\windows\build.ps1, on Windows with Python 3.12 and Inno Setup 6.3 or newer.
#
# NEVER RUN by us yet, and the program itself has not been tried on Windows: its host wants Unix sockets.
$ErrorActionPreference = "Stop"
Set-Location (Join-Path $PSScriptRoot "..\..")

# PowerShell goes on after a program that failed.
function Invoke-Step {
    $program, $words = $args
    & $program @words
    if ($LASTEXITCODE -ne 0) { throw "$args ended with exit code $LASTEXITCODE." }
}

$version = (Select-String -Path engine_host\__init__.py -Pattern '^__version__ = "(.*)"').Matches[0].Groups[1].Value
$python = "build\windows\Scripts\python.exe"
Invoke-Step py "-3.12" "-m" venv build\windows
Invoke-Step $python "-m" pip install "--quiet" "--require-hashes" -r packaging/locks/run.lock
Invoke-Step $python packaging\demo_model\gguf_to_safetensors.py resources\models\sndr-demo\sndr-demo-q8_0.gguf resources\models\sndr-demo
Invoke-Step $python "-m" hatchling build "-t" wheel "-d" dist
Invoke-Step $python packaging\frozen\icons.py "--ico" packaging\windows\sndr.ico
Invoke-Step $python packaging\frozen\freeze.py (Get-ChildItem dist\sndr_control_center-*.whl | Select-Object -Last 1).FullName
Invoke-Step "${env:ProgramFiles(x86)}\Inno Setup 6\ISCC.exe" "/DVersion=$version" packaging\windows\sndr.iss
